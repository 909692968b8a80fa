// Claude Code. It defers MCP tools and finds them with a tool of its own, unless its environment says otherwise.

import { join } from "node:path";

import { entries, platform, writeJson } from "./files.mjs";

const search = {
    tool: "ToolSearch",
    input: (name) => ({ query: name.replaceAll("_", " "), max_results: 5 }),
    exact: (name) => ({ query: `select:${name}`, max_results: 5 }),
};

const claudeCode = { name: "claude-code", profile: "claude-code", part: "claude-code", search, program, launch: (run) => launch(run, {}) };

export default claudeCode;

// Every tool in every request.
export const claudeCodeEager = {
    ...claudeCode,
    name: "claude-code-eager",
    profile: "claude-code/eager",
    search: undefined,
    launch: (run) => launch(run, { ENABLE_TOOL_SEARCH: "false" }),
};

function program(folder) {
    return [join(folder, `node_modules/@anthropic-ai/claude-code-${platform()}/claude`)];
}

function launch({ home, servers, model, prompt }, more) {
    const config = join(home, "mcp.json");
    writeJson(config, { mcpServers: entries(servers, ({ command, args }) => ({ type: "stdio", command, args })) });
    const allowed = [...servers.map(({ name }) => `mcp__${name}`), "ToolSearch"].join(",");
    return {
        args: ["-p", prompt, "--mcp-config", config, "--strict-mcp-config", "--allowedTools", allowed],
        env: {
            ANTHROPIC_BASE_URL: model,
            ANTHROPIC_API_KEY: "stub",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
            DISABLE_AUTOUPDATER: "1",
            ...more,
        },
    };
}
