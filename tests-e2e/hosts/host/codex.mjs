// Codex. It speaks the Responses API, starts servers with a scrubbed environment, and has a home of its own.

import { join } from "node:path";

import { platform, writeText } from "./files.mjs";

const TRIPLES = {
    "linux-x64": "x86_64-unknown-linux-musl",
    "linux-arm64": "aarch64-unknown-linux-musl",
    "darwin-x64": "x86_64-apple-darwin",
    "darwin-arm64": "aarch64-apple-darwin",
};

export default {
    name: "codex",
    install: "@openai/codex@0.166.0",
    search: { tool: "tool_search", input: (name) => ({ query: name.replaceAll("_", " "), limit: 5 }) },

    program(folder) {
        return [join(folder, `node_modules/@openai/codex-${platform()}/vendor/${TRIPLES[platform()]}/bin/codex`)];
    },

    launch({ home, server, model, prompt }) {
        const text = (value) => JSON.stringify(value);
        const lines = [
            'model = "gpt-5"',
            'model_provider = "stub"',
            "check_for_update_on_startup = false",
            "[analytics]",
            "enabled = false",
            "[model_providers.stub]",
            'name = "stub"',
            `base_url = ${text(`${model}/v1`)}`,
            'wire_api = "responses"',
            'env_key = "STUB_KEY"',
            `[mcp_servers.${server.name}]`,
            `command = ${text(server.command)}`,
            `args = ${text(server.args)}`,
        ];
        writeText(join(home, ".codex/config.toml"), `${lines.join("\n")}\n`);
        return {
            args: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt],
            env: { CODEX_HOME: join(home, ".codex"), STUB_KEY: "stub" },
        };
    },
};
