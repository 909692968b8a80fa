// The installed SDK, and small values that several parts of the conformance server need.

import { createRequire } from "node:module";
import { join } from "node:path";

const load = createRequire(join(process.env.PLUGBAY_E2E_DIR, "package.json"));
export const sdk = load("@modelcontextprotocol/server");
export const { serveStdio } = load("@modelcontextprotocol/server/stdio");
export const node = load("@modelcontextprotocol/node");
export const client = { ...load("@modelcontextprotocol/client"), ...load("@modelcontextprotocol/client/stdio") };
export const { z } = load("zod");

// The smallest PNG (one pixel) and the smallest WAV (no samples) there are.
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
export const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

export const text = (text) => ({ type: "text", text });
export const image = { type: "image", data: PNG, mimeType: "image/png" };
export const said = (words) => ({ content: [text(words)] });

// A form with these fields, all of them required.
export const form = (message, properties) =>
    sdk.inputRequired.elicit({
        message,
        requestedSchema: { type: "object", properties, required: Object.keys(properties) },
    });
