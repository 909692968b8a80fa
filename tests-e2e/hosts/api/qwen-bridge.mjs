// Qwen Code's deferred tools: a reminder names them, `tool_search` shows their schemas, `tool_call` calls them.

const NAME = /\bmcp__[A-Za-z0-9_.-]+/g;

// Every tool that is named; deferred until its schema has been shown.
export function bridgedTools(tools, words, results) {
    const has = (name) => tools.some((tool) => tool.name === name);
    if (!has("tool_search") || !has("tool_call")) return [];
    const shown = new Set(results.filter((text) => text.includes("<function")).flatMap((text) => text.match(NAME) ?? []));
    const named = [...new Set([...(words.match(NAME) ?? []), ...shown])].filter((name) => !has(name));
    return named.map((name) => ({ name, kind: "bridged", definition: "", deferred: !shown.has(name) }));
}

export function bridgedCall(tool, input) {
    return tool.kind === "bridged" ? { name: "tool_call", args: { name: tool.name, arguments: input } } : undefined;
}
