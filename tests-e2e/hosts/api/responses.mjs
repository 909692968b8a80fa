// OpenAI's Responses, the only one that Codex speaks. A server's tools stand together in a namespace.

import { events, flat } from "./events.mjs";

export const handles = (path) => path.endsWith("/responses");

export function read({ body }) {
    const input = body.input ?? [];
    const found = input.filter((item) => item.type === "tool_search_output").flatMap((item) => item.tools ?? []);
    return {
        tools: [...(body.tools ?? []), ...found].flatMap((tool) => spread(tool)),
        results: input.filter((item) => item.type?.endsWith("_output")).map(result),
        words: [body.instructions, flat(input.map((item) => item.content))].join("\n"),
    };
}

export function call(response, { tool, input, id }) {
    const item = tool.kind === "tool_search"
        ? { type: "tool_search_call", id: `ts_${id}`, call_id: id, execution: "client", status: "completed", arguments: input }
        : { type: "function_call", id: `fc_${id}`, call_id: id, name: tool.own, namespace: tool.space, arguments: JSON.stringify(input) };
    send(response, item);
}

export function say(response, { text }) {
    send(response, { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text }] });
}

function send(response, item) {
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const all = [
        { type: "response.created", response: { id: "resp_1" } },
        { type: "response.output_item.done", output_index: 0, item },
        { type: "response.completed", response: { id: "resp_1", output: [item], usage } },
    ];
    events(response, all.map((data) => ({ event: data.type, data })));
}

function spread(tool) {
    if (tool.type === "namespace") {
        return tool.tools.map((inner) => ({ ...one(inner), name: `${tool.name}${inner.name}`, own: inner.name, space: tool.name }));
    }
    return [one(tool)];
}

function one(tool) {
    const name = tool.name ?? tool.type;
    return { name, own: name, kind: tool.type, definition: tool, deferred: tool.defer_loading === true };
}

function result({ call_id, output, tools }) {
    const text = tools ? JSON.stringify(tools) : typeof output === "string" ? output : flat(output) || JSON.stringify(output);
    return { id: call_id, text, failed: false };
}
