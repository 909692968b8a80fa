// Anthropic's Messages, as Claude Code speaks them.

import { events, flat } from "./events.mjs";

// Answers that share an id are one to Claude Code.
let answers = 0;

export const handles = (path) => path.endsWith("/messages");

export function read({ body }) {
    const said = (body.messages ?? []).flatMap(parts);
    const loaded = loadedLater(said);
    const deferred = (tool) => tool.defer_loading === true && !loaded.has(tool.name);
    const there = (body.tools ?? []).filter((tool) => loaded.get(tool.name) !== false);
    return {
        tools: there.map((tool) => ({ name: tool.name, definition: tool, deferred: deferred(tool) })),
        results: said.filter((part) => part.type === "tool_result").map(result),
        words: flat([body.system, said.filter((part) => part.type === "text")]),
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
    const id = `msg_${(answers += 1)}`;
    const message = { id, type: "message", role: "assistant", model, content: [], stop_reason: null, usage };
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

// A tool that comes in the middle of a conversation stands in `tools` as a deferred one, so that the prompt cache
// holds; what makes it usable is a reference further down. One that is taken away stays there too, and words say so.
function loadedLater(said) {
    const loaded = new Map();
    for (const part of said) {
        if (part.type === "tool_addition") loaded.set(part.tool.name, true);
        if (part.type === "text" && part.text.includes("no longer available")) {
            for (const line of part.text.split("\n")) loaded.set(line, false);
        }
        if (part.type !== "tool_result" || !Array.isArray(part.content)) continue;
        for (const found of part.content.filter(({ type }) => type === "tool_reference")) loaded.set(found.tool_name, true);
    }
    return loaded;
}

function parts({ content }) {
    return typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
}

// What a host's own search found comes as references; the tools themselves are in the same request.
function result({ tool_use_id, content, is_error }) {
    const list = typeof content === "string" ? [{ text: content }] : (content ?? []);
    const text = list.map((part) => part.text ?? JSON.stringify(part)).join("\n");
    return { id: tool_use_id, text, failed: is_error === true };
}
