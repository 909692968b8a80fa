// Gemini's generateContent and streamGenerateContent. Calls have no ids there: the n-th result belongs to the n-th call.

import { events, flat } from "./events.mjs";

export const handles = (path) => /:(stream)?generateContent/i.test(path);

export function read({ body }) {
    const declared = (body.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []);
    const parts = (body.contents ?? []).flatMap((content) => content.parts ?? []);
    const answers = parts.filter((part) => part.functionResponse).map((part) => part.functionResponse);
    return {
        tools: declared.map((tool) => ({ name: tool.name, definition: tool, deferred: false })),
        results: answers.map(result),
        words: flat([body.systemInstruction?.parts, parts]),
    };
}

export function call(response, { tool, input, path }) {
    send(response, path, { functionCall: { name: tool.name, args: input } });
}

export function say(response, { text, path }) {
    send(response, path, { text });
}

function send(response, path, part) {
    const candidate = { content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 };
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    const data = { candidates: [candidate], usageMetadata, modelVersion: "stub" };
    if (/:stream/i.test(path)) return events(response, [{ data }]);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(data));
}

function result({ response }, index) {
    const text = typeof response?.output === "string" ? response.output : JSON.stringify(response);
    return { id: `call_${index + 1}`, text, failed: "error" in (response ?? {}) };
}
