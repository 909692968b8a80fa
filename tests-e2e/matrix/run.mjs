// Runs each host against one gateway with all servers behind it and prints what works between which eras.
// Usage: see ../matrix.sh

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { endAll, listen } from "../conformance/processes.mjs";
import { judge } from "./expected.mjs";
import { render } from "./table.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const E2E = process.env.PLUGBAY_E2E_DIR;
const PATIENCE_MS = 900_000;
const AT_ONCE = 2;

const PROGRAMS = {
    ts1: { era: "legacy", words: (what) => [process.execPath, join(HERE, `${what}.mjs`)], line: ["v1"] },
    py1: { era: "legacy", words: (what) => [join(E2E, "py1/bin/python"), join(HERE, `${what}.py`)], line: [] },
    rs1: { era: "legacy", words: (what) => [PEER, what], line: ["legacy"] },
    ts2: { era: "modern", words: (what) => [process.execPath, join(HERE, `${what}.mjs`)], line: ["v2"] },
    py2: { era: "modern", words: (what) => [join(E2E, "py2/bin/python"), join(HERE, `${what}.py`)], line: [] },
    rs2: { era: "modern", words: (what) => [PEER, what], line: ["modern"] },
};
const NAMES = Object.keys(PROGRAMS);

const { values: options } = parseArgs({
    options: {
        over: { type: "string", multiple: true, default: ["stdio", "http"] },
        host: { type: "string", multiple: true, default: NAMES },
        plugbay: { type: "string", default: process.env.PLUGBAY_BIN ?? built() },
    },
});

// The program made of the Rust SDK is built with plugbay, and so beside it.
const PEER = [options.plugbay, built()].map((path) => join(dirname(resolve(path)), "plugbay-matrix-peer")).find(existsSync);
if (!PEER) {
    console.error(`matrix: no plugbay-matrix-peer beside ${options.plugbay}: cargo build --package plugbay-matrix-peer`);
    process.exit(2);
}

const scratch = mkdtempSync(join(tmpdir(), "plugbay-matrix-"));
process.on("exit", () => {
    endAll();
    rmSync(scratch, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));

try {
    const runs = options.over.flatMap((over) => options.host.map((host) => ({ host, over })));
    const outcomes = (await some(runs, AT_ONCE, runHost)).flat();
    console.log(render(outcomes));
    process.exitCode = outcomes.some((outcome) => outcome.problem) ? 1 : 0;
} catch (error) {
    console.error(`matrix: ${error.message}`);
    process.exitCode = 2;
}
process.exit();

// One outcome for each server and row: { host, over, server, hostEra, serverEra, row, problem }.
async function runHost({ host, over }) {
    const home = mkdtempSync(join(scratch, `${host}-${over}-`));
    const { era, words } = PROGRAMS[host];
    const plan = join(home, "plan.json");
    writeFileSync(plan, JSON.stringify({ era, servers: NAMES, ...(await gateway(home, over)) }));
    const seen = JSON.parse(await finish([...words("host"), plan]));
    return NAMES.flatMap((server) => {
        const serverEra = PROGRAMS[server].era;
        const verdicts = judge(host, era, server, serverEra, seen[server] ?? {});
        return verdicts.map((verdict) => ({ host, over, server, hostEra: era, serverEra, ...verdict }));
    });
}

// How a host reaches a gateway in a home of its own: a program to start, or an address.
async function gateway(home, over) {
    const file = join(home, "config.json");
    const servers = Object.fromEntries(NAMES.map((name) => [name, entry(name)]));
    const config = { mode: "all", defaults: { start: "10m" }, mcpServers: servers };
    writeFileSync(file, JSON.stringify(config));
    const folders = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"];
    const env = { PATH: process.env.PATH, ...Object.fromEntries(folders.map((name) => [name, home])) };
    const command = resolve(options.plugbay);
    const args = ["serve", "--config", file];
    if (over === "stdio") return { command, args: [...args, "--no-daemon"], env, cwd: home };
    return { url: await listen(command, [...args, "--http", "127.0.0.1:0"], { env, cwd: home }) };
}

function entry(name) {
    const { words, line } = PROGRAMS[name];
    const [command, ...args] = words("server");
    return { command, args: [...args, name, ...line], env: { PLUGBAY_E2E_DIR: E2E } };
}

function finish([command, ...args]) {
    return new Promise((resolve, reject) => {
        const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], timeout: PATIENCE_MS });
        let [said, complained] = ["", ""];
        child.stdout.setEncoding("utf8").on("data", (text) => (said += text));
        child.stderr.setEncoding("utf8").on("data", (text) => (complained += text));
        child.once("error", reject);
        child.once("close", (code, signal) => {
            if (code === 0) resolve(said);
            else reject(new Error(`${args.join(" ")} ended with ${code ?? signal}:\n${complained}`));
        });
    });
}

// Like Promise.all over `work`, but never more than `limit` at a time.
async function some(items, limit, work) {
    const results = [];
    const queue = items.entries();
    const worker = async () => {
        for (const [index, item] of queue) results[index] = await work(item);
    };
    await Promise.all(Array.from({ length: limit }, worker));
    return results;
}

function built() {
    return join(process.env.CARGO_TARGET_DIR ?? join(HERE, "../../target"), "debug/plugbay");
}
