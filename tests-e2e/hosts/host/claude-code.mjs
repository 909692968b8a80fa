// Claude Code. It defers MCP tools and finds them with a tool of its own.

import { join } from "node:path";

import { platform, writeJson } from "./files.mjs";

export default {
    name: "claude-code",
    part: "claude-code",
    search: { tool: "ToolSearch", input: (name) => ({ query: name.replaceAll("_", " "), max_results: 5 }) },

    program(folder) {
        return [join(folder, `node_modules/@anthropic-ai/claude-code-${platform()}/claude`)];
    },

    launch({ home, server, model, prompt }) {
        const config = join(home, "mcp.json");
        const { name, ...entry } = server;
        writeJson(config, { mcpServers: { [name]: { type: "stdio", ...entry } } });
        return {
            args: ["-p", prompt, "--mcp-config", config, "--strict-mcp-config", "--allowedTools", `mcp__${name},ToolSearch`],
            env: {
                ANTHROPIC_BASE_URL: model,
                ANTHROPIC_API_KEY: "stub",
                CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
                DISABLE_AUTOUPDATER: "1",
            },
        };
    },
};
