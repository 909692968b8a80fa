// The servers that are measured: six real ones, directly or behind plugbay.

import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

import { newHome, tapped } from "../drive.mjs";
import { writeJson } from "../host/files.mjs";

const CACHE = ".cache/plugbay";
export const MODES = ["all", "search", "activate", "suite"];

// One place for all runs: plugbay remembers the lists of servers by how they are started.
const ground = newHome();
const peers = process.env.PLUGBAY_E2E_DIR;
export const REPOSITORY = join(ground, "work");
execFileSync("git", ["init", "--quiet", "--initial-branch=main", REPOSITORY]);

export function six() {
    const node = (...path) => ({ command: process.execPath, args: [join(peers, ...path)] });
    const official = (folder, name) => node(folder, "node_modules/@modelcontextprotocol", name, "dist/index.js");
    const filesystem = official("", "server-filesystem");
    return [
        { name: "everything", ...official("", "server-everything") },
        { name: "filesystem", ...filesystem, args: [...filesystem.args, REPOSITORY] },
        { name: "memory", ...official("", "server-memory") },
        { name: "git", command: join(peers, "py2/bin/mcp-server-git"), args: ["--repository", REPOSITORY] },
        { name: "time", command: join(peers, "py2/bin/mcp-server-time"), args: ["--local-timezone", "UTC"] },
        { name: "thinking", ...official("measure", "server-sequential-thinking") },
    ];
}

// A new home, with nothing, with these servers, or with plugbay in front of them. Gives { home, servers, log }.
export function place(mode, { plugbay, host, profile, servers = six(), name = "plugbay" }) {
    const home = newHome();
    const log = join(home, "messages.jsonl");
    if (mode === "none") return { home, log, servers: [] };
    if (mode === "direct") return { home, log, servers: servers.map((server, index) => tapped(index === 0 ? log : `${log}.${index}`, server)) };
    const config = join(home, "plugbay.json");
    const entries = servers.map(({ name, command, args }) => [name, { command, args }]);
    writeJson(config, { mode: mode === "auto" ? undefined : mode, listWait: "30s", mcpServers: Object.fromEntries(entries) });
    warm(home, config, { plugbay, key: key(host, servers) });
    const more = profile ? ["--host", profile] : [];
    const own = { name, command: plugbay, args: ["serve", "--no-daemon", "--config", config, ...more] };
    return { home, log, servers: [tapped(log, own)] };
}

// What plugbay has learnt in this home is there in the next home of the same host.
export function remember({ home }, host, servers = six()) {
    keep(home, key(host, servers));
}

// Users see a gateway that has met its servers before.
function warm(home, config, { plugbay, key }) {
    if (existsSync(key)) {
        mkdirSync(join(home, ".cache"), { recursive: true });
        cpSync(key, join(home, CACHE), { recursive: true });
        return;
    }
    const { PATH, LANG } = process.env;
    spawnSync(plugbay, ["--config", config, "list"], { env: { PATH, LANG, HOME: home }, stdio: "ignore" });
    keep(home, key);
}

function keep(home, key) {
    if (existsSync(join(home, CACHE))) cpSync(join(home, CACHE), key, { recursive: true });
}

function key(host, servers) {
    return join(ground, ["remembered", host, ...servers.map(({ name }) => name)].join("-"));
}
