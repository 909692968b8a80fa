// The tools that the suite asks for: what they answer, tell on the way, and change.

import { setTimeout as sleep } from "node:timers/promises";

import { PNG, WAV, image, said, sdk, text, z } from "./sdk.mjs";
import { addAskingTools } from "./asking-tools.mjs";

const PAUSE_MS = 50;

export function addTools(server, shared) {
    const tool = (name, answer, config = {}) =>
        server.registerTool(name, { description: `The suite's ${name}`, ...config }, answer);

    tool("test_simple_text", () => said("This is a simple text response for testing."));
    tool("test_image_content", () => ({ content: [image] }));
    tool("test_audio_content", () => ({ content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }] }));
    tool("test_embedded_resource", () => ({
        content: [resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
    }));
    tool("test_multiple_content_types", () => ({
        content: [
            text("Multiple content types test:"),
            { ...image, data: PNG },
            resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ],
    }));
    tool("test_error_handling", () => {
        throw new Error("This tool intentionally returns an error for testing");
    });
    tool("test_tool_with_logging", logs);
    tool("test_logging_tool", logs);
    tool("test_tool_with_progress", progresses);
    tool("test_header_param", ({ region }) => said(region), {
        inputSchema: sdk.fromJsonSchema({
            type: "object",
            properties: { region: { type: "string", "x-mcp-header": "Region" } },
        }),
    });
    tool("json_schema_2020_12_tool", () => said("valid"), { inputSchema: sdk.fromJsonSchema(contactSchema()) });
    addAskingTools(tool, shared);

    tool("test_trigger_tool_change", () => {
        shared.extraTools += 1;
        (shared.notify ?? connectionNotify(server)).toolsChanged();
        return said("one more tool");
    });
    tool("test_trigger_prompt_change", () => {
        shared.extraPrompts += 1;
        (shared.notify ?? connectionNotify(server)).promptsChanged();
        return said("one more prompt");
    });
    for (let number = 1; number <= shared.extraTools; number += 1) {
        tool(`test_extra_tool_${number}`, () => said("extra"));
    }
}

// Over stdio one server lives as long as its connection and tells by itself.
function connectionNotify(server) {
    return {
        toolsChanged: () => server.sendToolListChanged(),
        promptsChanged: () => server.sendPromptListChanged(),
    };
}

async function logs(context) {
    for (const words of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        await context.mcpReq.log("info", words);
        await sleep(PAUSE_MS);
    }
    return said("logged");
}

async function progresses(context) {
    const progressToken = context.mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
        if (progressToken !== undefined) {
            const params = { progressToken, progress, total: 100 };
            await context.mcpReq.notify({ method: "notifications/progress", params });
        }
        await sleep(PAUSE_MS);
    }
    return said("progressed");
}

function resource(uri, mimeType, text) {
    return { type: "resource", resource: { uri, mimeType, text } };
}

// Every keyword that a careless server would lose on the way.
function contactSchema() {
    const string = { type: "string" };
    const needs = (...names) => ({ required: names });
    return {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        $defs: { address: { $anchor: "addressDef", type: "object", properties: { street: string, city: string } } },
        properties: {
            name: string,
            address: { $ref: "#/$defs/address" },
            contactMethod: { type: "string", enum: ["phone", "email"] },
            phone: string,
            email: string,
        },
        allOf: [{ anyOf: [needs("phone"), needs("email")] }],
        if: { properties: { contactMethod: { const: "phone" } }, ...needs("contactMethod") },
        then: needs("phone"),
        else: needs("email"),
        additionalProperties: false,
    };
}
