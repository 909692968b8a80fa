// opencode, with a provider that it does not know: chat completions.

import { join } from "node:path";

import { platform, writeJson } from "./files.mjs";

export default {
    name: "opencode",
    part: "opencode",

    program(folder) {
        return [join(folder, `node_modules/opencode-${platform()}/bin/opencode`)];
    },

    launch({ home, server, model, prompt }) {
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
            mcp: { [server.name]: { type: "local", command: [server.command, ...server.args], enabled: true } },
        });
        return {
            args: ["run", prompt],
            env: { OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_DEFAULT_PLUGINS: "1" },
        };
    },
};
