// Anthropic's Messages, as Claude Code speaks them.

import { events, flat } from "./events.mjs";

export const handles = (path) => path.endsWith("/messages");

export function read({ body }) {
    const messages = body.messages ?? [];
    return {
        tools: (body.tools ?? []).map((tool) => ({ name: tool.name, definition: tool, deferred: tool.defer_loading === true })),
        results: messages.flatMap((message) => parts(message).filter((part) => part.type === "tool_result").map(result)),
        words: flat([body.system, messages.flatMap(parts).filter((part) => part.type === "text")]),
    };
}

export function call(response, { tool, input, id, model }) {
    const start = { type: "tool_use", id, name: tool.name, input: {} };
    const delta = { type: "input_json_delta", partial_json: JSON.stringify(input) };
    send(response, { model, start, delta, reason: "tool_use" });
}

export function say(response, { text, model }) {
    const start = { type: "text", text: "" };
    send(response, { model, start, delta: { type: "text_delta", text }, reason: "end_turn" });
}

function send(response, { model, start, delta, reason }) {
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: "msg_1", type: "message", role: "assistant", model, content: [], stop_reason: null, usage };
    const all = [
        { type: "message_start", message },
        { type: "content_block_start", index: 0, content_block: start },
        { type: "content_block_delta", index: 0, delta },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 1 } },
        { type: "message_stop" },
    ];
    events(response, all.map((data) => ({ event: data.type, data })));
}

function parts({ content }) {
    return typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
}

// What a host's own search found comes as references; the tools themselves are in the same request.
function result({ tool_use_id, content, is_error }) {
    const text = typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? JSON.stringify(part)).join("\n");
    return { id: tool_use_id, text, failed: is_error === true };
}
