// A server made of the official TypeScript SDK v2: 2026-07-28 over HTTP, and legacy without sessions.
//
// Usage: PORT=0 node modern-server.mjs [--only-modern]     (with PLUGBAY_E2E_DIR naming what setup.sh installed)
//
// Says `listening on http://127.0.0.1:PORT/mcp` on stderr when it does.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const load = createRequire(join(process.env.PLUGBAY_E2E_DIR, "package.json"));
const { McpServer, createMcpHandler } = load("@modelcontextprotocol/server");
const { toNodeHandler } = load("@modelcontextprotocol/node");
const { z } = load("zod");

// The smallest PNG there is: one transparent pixel.
const PIXEL =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

// The SDK makes a server for each request, so what they share is out here.
let grown = 0;

const legacy = process.argv.includes("--only-modern") ? "reject" : "stateless";
const handler = createMcpHandler(build, { legacy });
const listener = createServer(toNodeHandler(handler));
listener.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
    console.error(`listening on http://127.0.0.1:${listener.address().port}/mcp`);
});

function build() {
    const server = new McpServer({ name: "modern", version: "1.0.0" }, { instructions: "Five tools." });
    server.registerTool(
        "echo",
        { description: "Says it back", inputSchema: z.object({ message: z.string() }) },
        ({ message }) => text(message),
    );
    server.registerTool(
        "count",
        { description: "Counts and tells how far it is", inputSchema: z.object({ to: z.number().int().max(100) }) },
        count,
    );
    server.registerTool(
        "weather",
        {
            title: "Weather",
            description: "The same weather for every place",
            inputSchema: z.object({ place: z.string() }),
            outputSchema: z.object({ place: z.string(), degrees: z.number(), sky: z.enum(["clear", "grey"]) }),
            annotations: { readOnlyHint: true },
            _meta: { "example.com/colour": "blue" },
        },
        ({ place }) => {
            const weather = { place, degrees: 21.5, sky: "clear" };
            return { ...text(JSON.stringify(weather)), structuredContent: weather };
        },
    );
    server.registerTool("picture", { description: "One pixel" }, () => ({
        content: [
            { type: "text", text: "a pixel" },
            { type: "image", data: PIXEL, mimeType: "image/png", annotations: { audience: ["user"], priority: 0.5 } },
        ],
    }));
    server.registerTool("fail", { description: "Never works" }, () => ({ ...text("as it always does"), isError: true }));
    server.registerTool("grow", { description: "Adds a tool to the list" }, () => {
        grown += 1;
        handler.notify.toolsChanged();
        return text(`grown_${grown}`);
    });
    for (let number = 1; number <= grown; number += 1) {
        server.registerTool(`grown_${number}`, { description: "Was not there before" }, () => text(String(number)));
    }
    return server;
}

async function count({ to }, context) {
    const progressToken = context.mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= to && progressToken !== undefined; progress += 1) {
        const params = { progressToken, progress, total: to, message: `${progress} of ${to}` };
        await context.mcpReq.notify({ method: "notifications/progress", params });
    }
    return text(`counted to ${to}`);
}

function text(text) {
    return { content: [{ type: "text", text }] };
}
