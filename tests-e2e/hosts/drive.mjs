// Runs one host once: in a home of its own, with a script in place of its model.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { startModel } from "./model-stub.mjs";

const TAP = fileURLToPath(new URL("tap.mjs", import.meta.url));
const PATIENCE_MS = 600_000;
const PROMPT = "Do what the script says.";

const scratch = mkdtempSync(join(tmpdir(), "plugbay-hosts-"));
const running = new Set();
process.on("exit", () => {
    for (const child of running) end(child);
    rmSync(scratch, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));

export function newHome() {
    return mkdtempSync(join(scratch, "home-"));
}

// The same server, with every message written down in `log`.
export function tapped(log, { name, command, args }) {
    return { name, command: process.execPath, args: [TAP, log, command, ...args] };
}

// `player` decides what the model does. `during` is given the child process; what the host started is ended after what it
// returns has settled. Gives { requests, seconds, code, output }.
export async function drive(host, [command, ...first], { home, servers, player, during, patience = PATIENCE_MS }) {
    const model = await startModel(player);
    const cache = join(scratch, "cache");
    const { args, env } = host.launch({ home, servers, model: model.url, prompt: PROMPT, cache });
    const started = Date.now();
    const how = { cwd: work(home), env: { ...surroundings(home), ...env }, during, patience };
    const ended = await run(command, [...first, ...args], how);
    const seconds = (Date.now() - started) / 1000;
    await model.stop();
    return { ...ended, seconds, requests: model.requests };
}

function run(command, args, { cwd, env, during, patience }) {
    const child = spawn(command, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    running.add(child);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
    return new Promise((done) => {
        const timer = setTimeout(() => end(child), patience);
        let disturbed;
        const finish = async (code) => {
            clearTimeout(timer);
            await disturbed;
            end(child);
            running.delete(child);
            done({ code, output });
        };
        child.once("error", (error) => finish(error.message));
        child.once("exit", (code, signal) => finish(code ?? signal));
        disturbed = during?.(child);
    });
}

// The host and everything it started.
function end(child) {
    try {
        process.kill(-child.pid, "SIGKILL");
    } catch {
        // It has ended by itself.
    }
}

// Nothing of the user's own settings and keys reaches a host.
function surroundings(home) {
    const { PATH, LANG } = process.env;
    return { PATH, LANG, HOME: home, TERM: "dumb", NO_COLOR: "1" };
}

function work(home) {
    const folder = join(home, "work");
    if (!existsSync(folder)) mkdirSync(folder);
    return folder;
}
