// opencode's code mode: one tool, `execute`, runs JavaScript in which the tools of servers are functions. Its description
// shows as many of them as fit a budget; a search finds the others.

export const CODE_SEARCH = "$codemode.search";

// The search, and the functions that the description shows or that a search has found.
export function opencodeCodeTools(tools, texts) {
    const execute = tools.find(({ name, definition }) => name === "execute" && definition.function.description?.includes("tools.<namespace>"));
    if (!execute) return [];
    const shown = execute.definition.function.description.split("## Available tools")[1] ?? "";
    const paths = [shown, ...texts].flatMap((text) => [...text.matchAll(/tools\.(\w+)(?:\.(\w+)|\[\\?"([^"\\]+)\\?"\])/g)]);
    const all = paths.map(([, space, name, quoted]) => ({ space, own: name ?? quoted })).filter(({ space }) => !space.startsWith("$"));
    const nested = [...new Map(all.map((tool) => [`${tool.space}.${tool.own}`, tool]))];
    return [
        { name: CODE_SEARCH, kind: "search", definition: "", deferred: false },
        ...nested.map(([name, tool]) => ({ ...tool, name, kind: "nested", definition: "", deferred: false })),
    ];
}

// What `execute` is to run, if this is a tool of that kind. A `field` is read from the result as the value that it is there.
export function opencodeCode(tool, input, field) {
    const text = JSON.stringify(input);
    if (tool.kind === "search") return `return await tools.$codemode.search(${text})`;
    if (tool.kind !== "nested") return undefined;
    const call = `await tools.${tool.space}[${JSON.stringify(tool.own)}](${text})`;
    return field ? `const found = ${call}; return "VALUE " + typeof found.${field}` : `return ${call}`;
}
