// What the checks share: a throw-away home, commands that must succeed, and lines that say what holds.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";

import { writeJson } from "../project.mjs";

const name = basename(process.argv[1], ".mjs");

export function holds(what) {
    console.log(`${name}: ${what}`);
}

// Ends the check as skipped: a tool is missing.
export function skip(why) {
    console.log(`${name}: skipped, ${why}`);
    process.exit(3);
}

// A folder that is gone when the check ends.
export function scratch() {
    const folder = mkdtempSync(join(tmpdir(), "plugbay-packaging-"));
    process.on("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
    return folder;
}

// An environment in which nothing of the real home is seen, with a configuration of one sample server. Without a daemon,
// which would outlive the check and write into a folder that is being removed.
export function home(folder, plugbay) {
    writeJson(join(folder, ".config/plugbay/config.jsonc"), {
        mode: "all",
        mcpServers: { calc: { command: plugbay, args: ["__sample", "calc"] } },
    });
    const { PATH, npm_config_registry } = process.env;
    return { PATH, HOME: folder, PLUGBAY_DAEMON: "off", npm_config_registry, npm_config_cache: join(folder, ".npm"), npm_config_update_notifier: "false" };
}

// Runs a command that must succeed, and returns its stdout.
export function run(command, args, options = {}) {
    return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], ...options });
}

// Runs a command that may fail.
export function attempt(command, args, options = {}) {
    return spawnSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], ...options });
}

// Speaks MCP with a gateway over its stdio: the handshake, the list of tools, and one call of a tool of the sample.
export async function handshake(command, args, env) {
    const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "inherit"] });
    const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    let id = 0;
    const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    const request = async (method, params) => {
        send({ id: ++id, method, params });
        for (;;) {
            const { value, done } = await answers.next();
            assert(!done, `${command} ended before it answered ${method}`);
            const answer = JSON.parse(value);
            if (answer.id === id) return answer.result ?? assert.fail(`${method}: ${value}`);
        }
    };
    const clientInfo = { name: "packaging", version: "1" };
    const { serverInfo } = await request("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    send({ method: "notifications/initialized" });
    const { tools } = await request("tools/list", {});
    const { content } = await request("tools/call", { name: "calc__evaluate", arguments: { expression: "(17 + 4) * 2" } });
    child.stdin.end();
    const code = await new Promise((ended) => child.on("exit", ended));
    assert.equal(code, 0, "the gateway ends well when its host closes stdin");
    assert(tools.some((tool) => tool.name === "calc__evaluate"), JSON.stringify(tools));
    assert.match(JSON.stringify(content), /42/);
    return serverInfo;
}
