// Codex with its newest models: one tool, `exec`, runs JavaScript, and all others are functions there. Those of MCP
// servers are not described beforehand; a script finds them in `ALL_TOOLS`.

export const FINDER = "ALL_TOOLS";

// The finder, the functions that `exec` describes, and those that the finder has found.
export function codeModeTools(tools, results) {
    const exec = tools.find(({ own, kind }) => own === "exec" && kind === "custom");
    if (!exec) return [];
    const described = [...exec.definition.description.matchAll(/declare const tools: \{ (\w+)\(/g)].map(([, name]) => name);
    const found = results.flatMap(({ text }) => [...text.matchAll(/FOUND (\w+)/g)].map(([, name]) => name));
    const nested = [...new Set([...described, ...found])].map((name) => ({ name, kind: "nested" }));
    const common = { space: exec.space, definition: "", deferred: false };
    return [{ name: FINDER, kind: "finder" }, ...nested].map((tool) => ({ ...tool, ...common }));
}

// What `exec` is to run, if this is a tool of that kind.
export function script(tool, input) {
    if (tool.kind === "finder") {
        return `for (const { name } of ALL_TOOLS) if (name.endsWith(${JSON.stringify(input.ending)})) text("FOUND " + name);`;
    }
    if (tool.kind === "nested") return `text(await tools.${tool.name}(${JSON.stringify(input)}));`;
    return undefined;
}
