// OpenAI's chat completions, which opencode speaks to any provider that it does not know.

import { events, flat } from "./events.mjs";

export const handles = (path) => path.endsWith("/chat/completions");

export function read({ body }) {
    const messages = body.messages ?? [];
    return {
        tools: (body.tools ?? []).map((tool) => ({ name: tool.function.name, definition: tool, deferred: false })),
        results: messages
            .filter((message) => message.role === "tool")
            .map((message) => ({ id: message.tool_call_id, text: flat(message.content), failed: false })),
        words: flat(messages.filter((message) => message.role !== "tool").map((message) => message.content)),
    };
}

export function call(response, { tool, input, id, model }) {
    const made = { index: 0, id, type: "function", function: { name: tool.name, arguments: JSON.stringify(input) } };
    send(response, model, { role: "assistant", content: null, tool_calls: [made] }, "tool_calls");
}

export function say(response, { text, model }) {
    send(response, model, { role: "assistant", content: text }, "stop");
}

function send(response, model, delta, reason) {
    const chunk = (choice, more) => ({
        data: { id: "chat_1", object: "chat.completion.chunk", created: 1, model, choices: [{ index: 0, ...choice }], ...more },
    });
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    events(response, [
        chunk({ delta, finish_reason: null }),
        chunk({ delta: {}, finish_reason: reason }, { usage }),
        { data: "[DONE]" },
    ]);
}
