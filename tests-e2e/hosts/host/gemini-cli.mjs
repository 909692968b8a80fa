// Gemini CLI.

import { join } from "node:path";

import { entries, writeJson } from "./files.mjs";

export default {
    name: "gemini-cli",
    profile: "gemini-cli",
    part: "gemini-cli",

    program(folder) {
        return [process.execPath, join(folder, "node_modules/@google/gemini-cli/bundle/gemini.js")];
    },

    launch({ home, servers, model, prompt }) {
        writeJson(join(home, ".gemini/settings.json"), {
            general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
            security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
            privacy: { usageStatisticsEnabled: false },
            telemetry: { enabled: false },
            mcpServers: entries(servers, ({ command, args }) => ({ command, args, trust: true })),
        });
        return {
            args: ["-p", prompt, "-m", "gemini-2.5-flash", "--approval-mode", "yolo"],
            env: { GEMINI_API_KEY: "stub", GOOGLE_GEMINI_BASE_URL: model, GEMINI_CLI_NO_RELAUNCH: "true" },
        };
    },
};
