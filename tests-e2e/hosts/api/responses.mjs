// OpenAI's Responses, the only API that Codex speaks. What it offers depends on the model: a server's tools in a
// namespace, a search for them, or one tool that runs JavaScript in which they are functions (see code-mode.mjs).

import { codeModeTools, script } from "./code-mode.mjs";
import { events, flat } from "./events.mjs";

const MORE_TOOLS = ["tool_search_output", "additional_tools"];

export const handles = (path) => path.endsWith("/responses");

export function read({ body }) {
    const input = body.input ?? [];
    const more = input.filter(({ type }) => MORE_TOOLS.includes(type)).flatMap(({ tools }) => tools ?? []);
    const results = input.filter(({ type }) => type?.endsWith("_output")).map(result);
    const tools = [...(body.tools ?? []), ...more].flatMap(spread);
    return {
        tools: [...tools, ...codeModeTools(tools, results)],
        results,
        words: [body.instructions, flat(input.map(({ content }) => content)), JSON.stringify([body.tools, more])].join("\n"),
    };
}

export function call(response, { tool, input, id, field }) {
    send(response, { id: `item_${id}`, call_id: id, ...made(tool, input, field) });
}

export function say(response, { text }) {
    send(response, { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text }] });
}

function made(tool, input, field) {
    const code = script(tool, input, field);
    if (code) return { type: "custom_tool_call", name: "exec", namespace: tool.space, input: code };
    if (tool.kind === "tool_search") return { type: "tool_search_call", execution: "client", arguments: input };
    return { type: "function_call", name: tool.own, namespace: tool.space, arguments: JSON.stringify(input) };
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
    if (tool.type !== "namespace") return [one(tool)];
    return tool.tools.map((inner) => ({ ...one(inner), name: `${tool.name}.${inner.name}`, space: tool.name }));
}

function one(tool) {
    const name = tool.name ?? tool.type;
    return { name, own: name, kind: tool.type, definition: tool, deferred: false };
}

function result({ call_id, output, tools }) {
    const text = tools ? JSON.stringify(tools) : typeof output === "string" ? output : flat(output) || JSON.stringify(output);
    return { id: call_id, text, failed: false };
}
