// OpenAI's chat completions, which opencode, Copilot CLI, Qwen Code and Goose speak to any provider that they do not know.

import { opencodeCode, opencodeCodeTools } from "./opencode-code.mjs";
import { events, flat } from "./events.mjs";
import { bridgedCall, bridgedTools } from "./qwen-bridge.mjs";

export const handles = (path) => path.endsWith("/chat/completions");

export function read({ body }) {
    const messages = body.messages ?? [];
    const tools = (body.tools ?? []).map((tool) => ({ name: tool.function.name, definition: tool, deferred: false }));
    const results = messages
        .filter((message) => message.role === "tool")
        .map((message) => ({ id: message.tool_call_id, text: flat(message.content), failed: false }));
    const words = flat(messages.filter((message) => message.role !== "tool").map((message) => message.content));
    const texts = results.map(({ text }) => text);
    return { tools: [...tools, ...opencodeCodeTools(tools, texts), ...bridgedTools(tools, words, texts)], results, words };
}

export function call(response, { tool, input, id, field, model, stream }) {
    const { name, args } = named(tool, input, field);
    const made = { index: 0, id, type: "function", function: { name, arguments: JSON.stringify(args) } };
    send(response, { model, stream }, { role: "assistant", content: null, tool_calls: [made] }, "tool_calls");
}

export function say(response, { text, model, stream }) {
    send(response, { model, stream }, { role: "assistant", content: text }, "stop");
}

function named(tool, input, field) {
    const code = opencodeCode(tool, input, field);
    if (code) return { name: "execute", args: { code } };
    return bridgedCall(tool, input) ?? { name: tool.name, args: input };
}

function send(response, { model, stream }, message, reason) {
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const common = { id: "chat_1", created: 1, model };
    if (stream === false) {
        response.writeHead(200, { "content-type": "application/json" });
        const choices = [{ index: 0, message, finish_reason: reason }];
        response.end(JSON.stringify({ ...common, object: "chat.completion", choices, usage }));
        return;
    }
    const chunk = (choice, more) => ({
        data: { ...common, object: "chat.completion.chunk", choices: [{ index: 0, ...choice }], ...more },
    });
    events(response, [
        chunk({ delta: message, finish_reason: null }),
        chunk({ delta: {}, finish_reason: reason }, { usage }),
        { data: "[DONE]" },
    ]);
}
