// GitHub Copilot CLI with a provider of the user's own. Whether it defers tools depends on the API, so it is two hosts.

import { join } from "node:path";

import { entries, platform, writeJson } from "./files.mjs";

const copilot = { part: "copilot-cli", program };

export default [
    // Chat completions: every tool is in the request.
    {
        ...copilot,
        name: "copilot-cli",
        profile: "copilot-cli/chat",
        hidden: true,
        launch: (run) => launch(run, { COPILOT_MODEL: "gpt-4.1", COPILOT_PROVIDER_TYPE: "openai" }),
    },
    // Messages: from some number of tools on, they are deferred.
    {
        ...copilot,
        name: "copilot-cli-search",
        profile: "copilot-cli",
        search: { tool: "tool_search_tool", input: (name) => ({ pattern: name }), byEnding: true },
        launch: (run) => launch(run, { COPILOT_MODEL: "claude-sonnet-4.5", COPILOT_PROVIDER_TYPE: "anthropic" }),
    },
];

function program(folder) {
    return [join(folder, `node_modules/@github/copilot-${platform()}/copilot`)];
}

function launch({ home, servers, model, prompt, cache }, provider) {
    writeJson(join(home, ".copilot/mcp-config.json"), {
        mcpServers: entries(servers, ({ command, args }) => ({ type: "local", command, args, tools: ["*"] })),
    });
    const url = provider.COPILOT_PROVIDER_TYPE === "openai" ? `${model}/v1` : model;
    return {
        args: ["-p", prompt, "--allow-all", "--no-auto-update", "--disable-builtin-mcps", "--no-custom-instructions"],
        env: {
            COPILOT_PROVIDER_BASE_URL: url,
            COPILOT_PROVIDER_API_KEY: "stub",
            COPILOT_OFFLINE: "true",
            COPILOT_AUTO_UPDATE: "false",
            // The program unpacks itself at its first start, which takes long.
            COPILOT_PKG_CACHE_HOME: join(cache, "copilot"),
            ...provider,
        },
    };
}
