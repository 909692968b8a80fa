// Drives real hosts, with a script in place of their model. Usage: see ../hosts.sh

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import claudeCode from "./host/claude-code.mjs";
import codex from "./host/codex.mjs";
import geminiCli from "./host/gemini-cli.mjs";
import opencode from "./host/opencode.mjs";
import { installed } from "./installed.mjs";
import { startModel } from "./model-stub.mjs";
import { observed } from "./observed.mjs";
import { Player } from "./player.mjs";
import { PROBES, SCENARIOS } from "./scenarios.mjs";
import { render, summary } from "./table.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const HOSTS = [claudeCode, ...codex, geminiCli, opencode];
const PATIENCE_MS = 600_000;
const PROMPT = "Do what the script says.";

const { values: options } = parseArgs({
    options: {
        host: { type: "string", multiple: true, default: HOSTS.map(({ name }) => name) },
        scenario: { type: "string", multiple: true, default: ["all", "search"] },
        times: { type: "string", default: "1" },
        plugbay: { type: "string", default: process.env.PLUGBAY_BIN ?? built() },
        keep: { type: "string" },
    },
});

const scratch = mkdtempSync(join(tmpdir(), "plugbay-hosts-"));
const running = new Set();
process.on("exit", () => {
    for (const child of running) end(child);
    rmSync(scratch, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));

const played = [];
for (const host of options.host.map(hostCalled)) {
    const program = installed(host);
    if (!program.path) {
        console.log(`${host.name}: skipped, ${program.problem}\n`);
        continue;
    }
    for (const name of options.scenario) {
        for (let round = 1; round <= Number(options.times); round += 1) {
            const outcome = await play(host, program.path, name, scenarioCalled(name));
            console.log(render(host.name, name, round, outcome));
            played.push({ host: host.name, scenario: name, ...outcome });
        }
    }
}
console.log(summary(played));
process.exit(played.length === 0 ? 3 : played.every(({ passed }) => passed) ? 0 : 1);

// One run of one host, in a home of its own.
async function play(host, [command, ...first], name, { server, steps }) {
    const home = mkdtempSync(join(scratch, "home-"));
    const log = join(home, "messages.jsonl");
    const player = new Player(steps, host.search);
    const model = await startModel(player);
    const real = server({ plugbay: resolve(options.plugbay), peers: process.env.PLUGBAY_E2E_DIR, home });
    const tapped = { name: real.name, command: process.execPath, args: [join(HERE, "tap.mjs"), log, real.command, ...real.args] };
    const { args, env } = host.launch({ home, server: tapped, model: model.url, prompt: PROMPT });
    const started = Date.now();
    const { code, output } = await run(command, [...first, ...args], { cwd: work(home), env: { ...surroundings(home), ...env } });
    const seconds = (Date.now() - started) / 1000;
    await model.stop();
    const outcome = { passed: player.passed, turns: player.turns, seconds, code, output, observed: observed(log) };
    if (options.keep) keep(`${host.name}-${name}`, { outcome, requests: model.requests });
    return outcome;
}

function run(command, args, { cwd, env }) {
    const child = spawn(command, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    running.add(child);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
    return new Promise((done) => {
        const timer = setTimeout(() => end(child), PATIENCE_MS);
        const finish = (code) => {
            clearTimeout(timer);
            end(child);
            running.delete(child);
            done({ code, output });
        };
        child.once("error", (error) => finish(error.message));
        child.once("exit", (code, signal) => finish(code ?? signal));
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
    mkdirSync(folder);
    return folder;
}

function keep(name, { outcome, requests }) {
    mkdirSync(options.keep, { recursive: true });
    writeFileSync(join(options.keep, `${name}.json`), JSON.stringify({ outcome, requests }, null, 1));
}

function hostCalled(name) {
    const names = HOSTS.map((host) => host.name).join(", ");
    return HOSTS.find((host) => host.name === name) ?? stop(`no host ${name}; there are ${names}`);
}

function scenarioCalled(name) {
    const all = { ...SCENARIOS, ...PROBES };
    return all[name] ?? stop(`no scenario ${name}; there are ${Object.keys(all).join(", ")}`);
}

function stop(message) {
    console.error(`hosts: ${message}`);
    process.exit(2);
}

function built() {
    return join(process.env.CARGO_TARGET_DIR ?? join(HERE, "../../target"), "debug/plugbay");
}
