// opencode, with a provider that it does not know: chat completions.

import { join } from "node:path";

import { CODE_SEARCH } from "../api/opencode-code.mjs";
import { entries, platform, writeJson } from "./files.mjs";

const opencode = { name: "opencode", profile: "opencode", part: "opencode", program, launch: (run) => launch(run, {}) };

export default opencode;

// One tool runs JavaScript, and those of servers are functions there.
export const opencodeCode = {
    ...opencode,
    name: "opencode-code",
    profile: "opencode/code",
    search: { tool: CODE_SEARCH, input: (name) => ({ query: name }) },
    launch: (run) => launch(run, { OPENCODE_EXPERIMENTAL_CODE_MODE: "1" }),
};

function program(folder) {
    return [join(folder, `node_modules/opencode-${platform()}/bin/opencode`)];
}

function launch({ home, servers, model, prompt }, more) {
    const provider = {
        npm: "@ai-sdk/openai-compatible",
        options: { baseURL: `${model}/v1`, apiKey: "stub" },
        models: { stub: { tool_call: true, limit: { context: 200_000, output: 8_000 } } },
    };
    writeJson(join(home, ".config/opencode/opencode.jsonc"), {
        autoupdate: false,
        share: "disabled",
        model: "stub/stub",
        small_model: "stub/stub",
        permission: { "*": "allow" },
        provider: { stub: provider },
        mcp: entries(servers, ({ command, args }) => ({ type: "local", command: [command, ...args], enabled: true })),
    });
    return {
        args: ["run", prompt],
        env: { OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_DEFAULT_PLUGINS: "1", ...more },
    };
}
