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

// What `exec` is to run, if this is a tool of that kind. A `field` is read from the result as the value that it is there.
export function script(tool, input, field) {
    if (tool.kind === "finder") {
        const fits = `name.endsWith(${JSON.stringify(input.ending.replaceAll(/\W/g, "_"))})`;
        return `for (const { name, description } of ALL_TOOLS) if (${fits}) text("FOUND " + name + "\\n" + description);`;
    }
    if (tool.kind !== "nested") return undefined;
    const call = `await tools.${tool.name}(${JSON.stringify(input)})`;
    return field ? `text("VALUE " + typeof (${call}).structuredContent.${field});` : `text(${call});`;
}
