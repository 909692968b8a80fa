// What a model reads of a request, in tokens of o200k.

import { join } from "node:path";
import { pathToFileURL } from "node:url";

const TOKENIZER = "measure/node_modules/gpt-tokenizer/esm/encoding/o200k_base.js";
const { countTokens } = await import(pathToFileURL(join(process.env.PLUGBAY_E2E_DIR, TOKENIZER)));

// The fields of each API in the order in which a provider's prompt cache sees them, most lasting first.
const LASTING = ["systemInstruction", "tools", "instructions", "system", "contents", "input", "messages"];

// { tokens, cached } of each request: `cached` is what it has in common with the beginning of the one before.
export function counted(turns) {
    let before = "";
    return turns.map((turn) => {
        const text = prompt(turn);
        const cached = count(text.slice(0, common(before, text)));
        before = text;
        return { tokens: count(text), cached };
    });
}

export function count(text) {
    return countTokens(text, { disallowedSpecial: new Set() });
}

// What the model reads, in one order: a definition that the API keeps back stands where the model has found it, as the
// provider puts it there. Marks for the cache are left out.
export function prompt({ body }) {
    const { tools, messages, ...rest } = body;
    const kept = new Map((tools ?? []).filter((tool) => tool.defer_loading).map((tool) => [tool.name, tool]));
    const whole = {
        ...rest,
        ...(tools && { tools: tools.filter((tool) => !kept.has(tool.name)) }),
        ...(messages && { messages: messages.map(({ content, ...more }) => ({ ...more, content: parts(content) })) }),
    };
    const first = LASTING.filter((name) => name in whole);
    const others = Object.keys(whole).filter((name) => !first.includes(name) && typeof whole[name] !== "object");
    const ordered = Object.fromEntries([...first, ...others].map((name) => [name, whole[name]]));
    return JSON.stringify(ordered, (key, value) => {
        if (key === "cache_control") return undefined;
        const found = value?.type === "tool_reference" ? value.tool_name : value?.type === "tool_addition" ? value.tool?.name : undefined;
        const definition = kept.get(found);
        // Once, where it is found first.
        kept.delete(found);
        return definition ? { found, ...definition } : value;
    });
}

function parts(content) {
    return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function common(one, two) {
    let same = 0;
    while (same < one.length && one[same] === two[same]) same += 1;
    return same;
}
