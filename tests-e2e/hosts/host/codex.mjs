// Codex. How it offers tools depends on the model, so it is three hosts.

import { join } from "node:path";

import { FINDER } from "../api/code-mode.mjs";
import { platform, writeText } from "./files.mjs";

const TRIPLES = {
    "linux-x64": "x86_64-unknown-linux-musl",
    "linux-arm64": "aarch64-unknown-linux-musl",
    "darwin-x64": "x86_64-apple-darwin",
    "darwin-arm64": "aarch64-apple-darwin",
};

// Its search takes a whole name for one word: `evaluate` does not find `calc__evaluate`.
const bySearch = { tool: "tool_search", input: (name) => ({ query: name, limit: 5 }) };
const byScript = { tool: FINDER, input: (name) => ({ ending: name }), byEnding: true };

export default [
    // Its own default: everything is a function in a script.
    codex("codex", "codex", "gpt-6.1-sol", byScript),
    // An older model: deferred tools, and a search for them.
    codex("codex-search", "codex/search", "gpt-5.5", bySearch),
    // A model that it does not know, as with local ones: everything is in the request.
    codex("codex-plain", "codex/plain", "stub", undefined),
];

function codex(name, profile, model, search) {
    return { name, profile, hidden: name !== "codex", part: "codex", search, program, launch: (run) => launch(run, model) };
}

function program(folder) {
    return [join(folder, `node_modules/@openai/codex-${platform()}/vendor/${TRIPLES[platform()]}/bin/codex`)];
}

function launch({ home, servers, model: url, prompt }, model) {
    const text = (value) => JSON.stringify(value);
    const lines = [
        `model = ${text(model)}`,
        'model_provider = "stub"',
        "check_for_update_on_startup = false",
        "[analytics]",
        "enabled = false",
        "[model_providers.stub]",
        'name = "stub"',
        `base_url = ${text(`${url}/v1`)}`,
        'wire_api = "responses"',
        'env_key = "STUB_KEY"',
        ...servers.flatMap(({ name, command, args }) => [
            `[mcp_servers.${name}]`,
            `command = ${text(command)}`,
            `args = ${text(args)}`,
            // Otherwise its first turn does not wait for a server that takes long to start.
            "required = true",
            "startup_timeout_sec = 60",
        ]),
    ];
    writeText(join(home, ".codex/config.toml"), `${lines.join("\n")}\n`);
    return {
        args: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt],
        env: { CODEX_HOME: join(home, ".codex"), STUB_KEY: "stub" },
    };
}
