// A home with four hosts and ten servers, written as people write such files.

import { createServer } from "node:net";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { writeJson, writeText } from "../host/files.mjs";
import { end, start } from "./run.mjs";

const FASTMCP = fileURLToPath(new URL("../../fastmcp_server.py", import.meta.url));

// The files that plugbay may change, and the servers that must move.
export function world({ home, model, weather, peers }) {
    for (const folder of ["work", "notes", "docs"]) mkdirSync(join(home, folder), { recursive: true });
    const servers = pieces({ home, peers });
    claudeCode(home, servers);
    codex(home, model, servers);
    gemini(home, servers, weather);
    opencode(home, model, servers);
    return {
        files: [".claude.json", ".claude/settings.json", ".codex/config.toml", ".gemini/settings.json", ".config/opencode/opencode.jsonc"],
        names: ["filesystem", "memory", "everything", "time", "git", "work-files", "weather", "notes", "demo", "docs"],
    };
}

// A server over HTTP, on a port that is free now.
export async function startWeather(peers, home) {
    const port = await freePort();
    const env = { PATH: process.env.PATH, HOME: home, PORT: String(port) };
    const child = start([join(peers, "py1/bin/python")], [FASTMCP], { cwd: home, env, stdio: "ignore" });
    const url = `http://127.0.0.1:${port}/mcp`;
    for (;;) {
        if (child.exitCode !== null) throw new Error("the FastMCP server has ended");
        const answer = await fetch(url).catch(() => undefined);
        if (answer) return { url, stop: () => end(child) };
        await new Promise((again) => setTimeout(again, 100));
    }
}

function pieces({ home, peers }) {
    const npm = (name, ...args) => [process.execPath, join(peers, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`), ...args];
    const python = (module, ...args) => [join(peers, "py2/bin/python"), "-m", module, ...args];
    return {
        filesystem: npm("filesystem", home),
        everything: npm("everything"),
        memory: npm("memory"),
        time: python("mcp_server_time"),
        git: python("mcp_server_git"),
        workFiles: npm("filesystem", join(home, "work")),
        docs: npm("filesystem", join(home, "docs")),
    };
}

function claudeCode(home, servers) {
    writeJson(join(home, ".claude.json"), {
        numStartups: 3,
        hasCompletedOnboarding: true,
        mcpServers: {
            filesystem: { type: "stdio", ...split(servers.filesystem), env: {} },
            memory: { type: "stdio", ...split(servers.memory) },
            everything: split(servers.everything),
        },
        projects: { [join(home, "work")]: { allowedTools: [], mcpServers: { time: { type: "stdio", ...split(servers.time) } } } },
    });
    writeJson(join(home, ".claude/settings.json"), {
        permissions: { allow: ["mcp__memory", "Bash(ls *)"], deny: ["mcp__filesystem__write_file"] },
    });
}

function codex(home, model, servers) {
    const text = (value) => JSON.stringify(value);
    const lines = [
        "# my models",
        'model = "stub" # by the script',
        'model_provider = "stub"',
        "check_for_update_on_startup = false",
        "",
        "[analytics]",
        "enabled = false",
        "",
        "[model_providers.stub]",
        'name = "stub"',
        `base_url = ${text(`${model}/v1`)}`,
        'wire_api = "responses"',
        'env_key = "STUB_KEY"',
        "",
        "# my servers",
        ...table("git", servers.git),
        "",
        ...table("work-files", servers.workFiles),
        "startup_timeout_sec = 60 # slow disk",
        "",
        ...table("everything", servers.everything),
    ];
    writeText(join(home, ".codex/config.toml"), `${lines.join("\n")}\n`);

    function table(name, [command, ...args]) {
        return [`[mcp_servers.${name}]`, `command = ${text(command)}`, `args = ${text(args)}`];
    }
}

function gemini(home, servers, weather) {
    writeJson(join(home, ".gemini/settings.json"), {
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
        security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
        privacy: { usageStatisticsEnabled: false },
        mcpServers: {
            weather: { httpUrl: weather.url, timeout: 60000 },
            notes: { ...split(servers.memory), env: { MEMORY_FILE_PATH: join(home, "notes/memory.json") } },
        },
    });
}

function opencode(home, model, servers) {
    const text = (value) => JSON.stringify(value);
    const local = (line, more = "") => `{ "type": "local", "command": ${text(line)}, ${more}"enabled": true }`;
    writeText(
        join(home, ".config/opencode/opencode.jsonc"),
        `{
  "$schema": "https://opencode.ai/config.json",
  // written by hand
  "autoupdate": false, "share": "disabled",
  "model": "stub/stub",
  "small_model": "stub/stub",
  "permission": { "*": "allow" },
  "provider": {
    "stub": {
      "npm": "@ai-sdk/openai-compatible",
      "options": { "baseURL": ${text(`${model}/v1`)}, "apiKey": "stub" },
      "models": { "stub": { "tool_call": true, "limit": { "context": 200000, "output": 8000 } } },
    },
  },
  /* servers */
  "mcp": {
    "demo": ${local(servers.everything, '"environment": { "DEMO": "1" }, ')},
    "git": ${local(servers.git)}, // the same as elsewhere
    "docs": ${local(servers.docs)},
  },
}
`,
    );
}

function split([command, ...args]) {
    return { command, args };
}

function freePort() {
    const server = createServer();
    return new Promise((found) => {
        server.listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => found(port));
        });
    });
}
