// Makes the folder of an MCPB bundle, which `mcpb pack` turns into one file.
//
// Usage: node packaging/mcpb/build.mjs --out FOLDER --binary PLATFORM=FILE
//
// A bundle's manifest can tell operating systems apart, but not processors: there is a bundle for each platform.

import { chmodSync, copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { binaries, freshFolder, project, writeJson } from "../project.mjs";

const CONFIG = {
    linux: "${HOME}/.config/plugbay/config.jsonc",
    darwin: "${HOME}/Library/Application Support/plugbay/config.jsonc",
};

const { values: options } = parseArgs({ options: { out: { type: "string" }, binary: { type: "string" } } });
if (!options.out || !options.binary) {
    console.error("build.mjs: --out and --binary are needed");
    process.exit(2);
}
const [binary] = binaries([options.binary]);
freshFolder(options.out);
mkdirSync(join(options.out, "server"));
copyFileSync(binary.file, join(options.out, "server/plugbay"));
chmodSync(join(options.out, "server/plugbay"), 0o755);
writeJson(join(options.out, "manifest.json"), manifest(binary));

function manifest({ os }) {
    return {
        manifest_version: "0.3",
        name: project.name,
        display_name: "plugbay",
        version: project.version,
        description: project.description,
        long_description:
            "A gateway in front of all your MCP servers. It starts the servers of its configuration file, "
            + "and shows the model only what it needs of their tools.",
        author: { name: project.author },
        license: project.license,
        keywords: project.keywords,
        server: {
            type: "binary",
            entry_point: "server/plugbay",
            mcp_config: {
                command: "${__dirname}/server/plugbay",
                args: ["serve", "--config", "${user_config.config}"],
                env: {},
            },
        },
        // They are those of the configured servers.
        tools_generated: true,
        prompts_generated: true,
        user_config: {
            config: {
                type: "file",
                title: "Configuration file",
                description: "The file with your MCP servers (JSON with comments, key \"mcpServers\").",
                required: true,
                default: CONFIG[os],
            },
        },
        compatibility: { platforms: [os] },
    };
}
