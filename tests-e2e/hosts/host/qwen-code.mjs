// Qwen Code, over chat completions. It defers MCP tools: a reminder names them, `tool_search` shows their schemas, and
// `tool_call` calls them.

import { join } from "node:path";

import { entries, writeJson } from "./files.mjs";

export default {
    name: "qwen-code",
    profile: "qwen-code",
    part: "qwen-code",
    search: {
        tool: "tool_search",
        input: (name) => ({ query: name.replaceAll("_", " ") }),
        exact: (name) => ({ query: `select:${name}` }),
    },

    program(folder) {
        return [process.execPath, join(folder, "node_modules/@qwen-code/qwen-code/cli.js")];
    },

    launch({ home, servers, model, prompt }) {
        writeJson(join(home, ".qwen/settings.json"), {
            general: { enableAutoUpdate: false, disableAutoUpdate: true, disableUpdateNag: true },
            security: { auth: { selectedType: "openai" }, folderTrust: { enabled: false } },
            privacy: { usageStatisticsEnabled: false },
            telemetry: { enabled: false },
            model: { name: "qwen3-coder-plus" },
            mcpServers: entries(servers, ({ command, args }) => ({ command, args, trust: true })),
        });
        return {
            args: ["-p", prompt, "--approval-mode", "yolo"],
            env: { OPENAI_API_KEY: "stub", OPENAI_BASE_URL: `${model}/v1`, OPENAI_MODEL: "qwen3-coder-plus", QWEN_CODE_NO_RELAUNCH: "true" },
        };
    },
};
