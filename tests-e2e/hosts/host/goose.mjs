// Goose, over chat completions.

import { join } from "node:path";

import { entries, writeJson } from "./files.mjs";

export default {
    name: "goose",
    profile: "goose",
    part: "goose",

    program(folder) {
        return [join(folder, "node_modules/@aaif/goose-binary-linux-x64/bin/goose")];
    },

    launch({ home, servers, model, prompt }) {
        const extension = ({ name, command, args }) => ({
            name,
            description: "",
            type: "stdio",
            cmd: command,
            args,
            enabled: true,
            timeout: 300,
        });
        // JSON is YAML, too.
        writeJson(join(home, ".config/goose/config.yaml"), {
            GOOSE_PROVIDER: "openai",
            GOOSE_MODEL: "gpt-4.1",
            GOOSE_MODE: "auto",
            GOOSE_TELEMETRY_ENABLED: false,
            extensions: entries(servers, extension),
        });
        return {
            args: ["run", "--no-session", "-t", prompt],
            env: {
                GOOSE_DISABLE_KEYRING: "1",
                GOOSE_TELEMETRY_OFF: "1",
                OPENAI_API_KEY: "stub",
                OPENAI_HOST: model,
                OPENAI_BASE_PATH: "v1/chat/completions",
            },
        };
    },
};
