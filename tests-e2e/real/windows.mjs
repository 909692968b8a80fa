// Five windows on ten real servers, with five gateways and with one daemon. Usage: see ../windows.sh

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { later } from "./client.mjs";
import { listTools } from "./definitions.mjs";
import { megabytes, processesWith, sum } from "./memory.mjs";
import { hasDaemon, plugbay, serveAlone, serveShared, stopDaemon } from "./plugbay.mjs";
import { configuration, servers } from "./servers.mjs";
import { table } from "./table.mjs";

const SHARE = 0.25;
const BRIDGE_BYTES = 3 * 1024 * 1024;
const PATIENCE_MS = 180_000;

const { values: options } = parseArgs({
    options: {
        plugbay: { type: "string", default: plugbay() },
        scopes: { type: "string", default: "shared" },
        keep: { type: "boolean", default: false },
    },
});
const program = resolve(options.plugbay);
const scratch = mkdtempSync(join(tmpdir(), "plugbay-windows-"));
const project = join(scratch, "project");
mkdirSync(project);
execFileSync("git", ["init", "--quiet", project]);

// One harmless call of each server: only a server that answers one surely runs.
const CALLS = {
    everything: ["echo", { message: "hello" }],
    filesystem: ["list_allowed_directories", {}],
    memory: ["read_graph", {}],
    thinking: ["sequentialthinking", { thought: "one", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }],
    tasks: ["list_requests", {}],
    git: ["git_status", { repo_path: project }],
    time: ["get_current_time", { timezone: "UTC" }],
    cli: ["show_security_rules", {}],
    sqlite: ["list_tables", {}],
    calculator: ["calculate", { expression: "6*7" }],
};
// A shared server is told all that hosts can do, and some list more tools then; so each window can do all of it.
const CAPABILITIES = { roots: {}, sampling: {}, elicitation: { form: {}, url: {} } };
const ten = servers(scratch).filter(({ name }) => CALLS[name]);

// What each window has of its own: its mode and its filter, and how a host of that mode calls a tool.
const direct = (server, tool, args) => [`${server}__${tool}`, args];
const WINDOWS = [
    { name: "all", mode: "all", call: direct },
    { name: "search", mode: "search", call: (server, tool, args) => ["execute_tool", { name: `${server}__${tool}`, arguments: args }] },
    { name: "activate", mode: "activate", activates: true, call: direct },
    { name: "suite", mode: "suite", call: (server, tool, args) => [`${server}_suite`, { action: "call", subtool: tool, args }] },
    { name: "filtered", mode: "all", allow: ({ name }) => [CALLS[name][0]], call: direct },
];

process.on("exit", () => {
    for (const { pid } of processesWith(scratch)) end(pid);
    options.keep || rmSync(scratch, { recursive: true, force: true });
});

const problems = [];
const plain = await measure("plain", serveAlone, undefined);
if (!hasDaemon(program)) {
    show([["five gateways", plain]]);
    console.log("skipped: this plugbay has no daemon");
    process.exit(3);
}
const shared = await measure("daemon", serveShared, options.scopes === "shared" ? "shared" : undefined);
show([["five gateways", plain], ["one daemon", shared]]);
check();
problems.forEach((problem) => console.log(`FAILED: ${problem}`));
process.exit(problems.length === 0 ? 0 : 1);

// Opens the windows, has every server used from each, and takes stock of all processes.
async function measure(name, serve, scope) {
    const home = mkdtempSync(join(scratch, `home-${name}-`));
    const windows = WINDOWS.map((window) => open(window, { home, serve, scope }));
    const lists = await Promise.all(windows.map(use));
    const processes = processesWith(home);
    const bridges = windows.map(({ client }) => processes.find(({ pid }) => pid === client.pid));
    await Promise.all(windows.map(({ client }) => client.close()));
    if (serve === serveShared) stopDaemon(program, home);
    await nothingLeft(name, home);
    return { processes, bridges, lists };
}

// Each window has a configuration of its own; they differ in what a window may choose, and not in the servers.
function open(window, { home, serve, scope }) {
    const file = join(home, `${window.name}.json`);
    const own = (server) => ({ scope, allow: window.allow?.(server) });
    writeFileSync(file, JSON.stringify(configuration(ten, { mode: window.mode }, own), null, 2));
    return { ...window, client: serve(program, file, { cwd: project, home }) };
}

// Calls a tool of each server and gives the list that the window ends up with: definitions by name.
async function use({ name, activates, call, client }) {
    try {
        await client.initialize({ name: `window-${name}`, capabilities: CAPABILITIES });
        await everyServerListed(client, name);
        if (activates) await callTool(client, "gateway_activate", { name: "*" });
        await Promise.all(ten.map((server) => callTool(client, ...call(server.name, ...CALLS[server.name]))));
        return await listTools(client);
    } catch (error) {
        throw new Error(`window ${name}: ${error.message}\n${client.said}`);
    }
}

// In the modes that list tools or suites, waits until each server has its place; the others wait by themselves.
async function everyServerListed(client, name) {
    if (!["all", "filtered", "suite"].includes(name)) return;
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
        const tools = [...(await listTools(client)).keys()];
        const absent = ten.filter((server) => !tools.some((tool) => tool.startsWith(`${server.name}_`)));
        if (absent.length === 0) return;
        if (Date.now() > deadline) throw new Error(`not listed: ${absent.map((server) => server.name).join(", ")}`);
        await later(100);
    }
}

async function callTool(client, name, args) {
    const { result } = await client.request("tools/call", { name, arguments: args });
    if (result.isError) throw new Error(`${name}: ${JSON.stringify(result.content).slice(0, 500)}`);
}

async function nothingLeft(name, home) {
    const deadline = Date.now() + 15_000;
    let left = processesWith(home);
    while (left.length > 0 && Date.now() < deadline) {
        await later(100);
        left = processesWith(home);
    }
    for (const { pid, argv } of left) {
        problems.push(`${name}: a process is left: ${argv.join(" ")}`);
        end(pid);
    }
}

function show(runs) {
    const total = (run, of) => megabytes(sum(run.processes.map((each) => each[of])));
    const row = (title, cell) => [title, ...runs.map(([, run]) => cell(run))];
    console.log(
        table(
            ["", ...runs.map(([title]) => title)],
            [
                row("processes", ({ processes }) => processes.length),
                ...ten.map(({ name, command }) => row(`– ${name}`, (run) => copies(run, command))),
                row("memory, proportional share (MB)", (run) => total(run, "pss")),
                row("memory, resident (MB)", (run) => total(run, "rss")),
                row("– of plugbay itself, proportional (MB)", (run) => megabytes(sum(own(run).map(({ pss }) => pss)))),
                row("a window's process, its own memory (MB)", (run) => megabytes(ownMemory(run))),
            ],
        ),
    );
}

function check() {
    WINDOWS.forEach(({ name }, index) => {
        const [without, within] = [plain.lists[index], shared.lists[index]];
        const differing = [...new Set([...without.keys(), ...within.keys()])].filter((tool) => without.get(tool) !== within.get(tool));
        if (differing.length > 0) problems.push(`window ${name} lists other tools through the daemon: ${differing.join(", ")}`);
    });
    if (options.scopes === "shared") {
        for (const { name, command } of ten) if (copies(shared, command) !== 1) problems.push(`${name} runs ${copies(shared, command)} times`);
    }
    const share = sum(shared.processes.map(({ pss }) => pss)) / sum(plain.processes.map(({ pss }) => pss));
    console.log(`memory with the daemon: ${Math.round(share * 100)}% of five gateways (at most ${SHARE * 100}%)`);
    if (share > SHARE) problems.push("the daemon saves too little memory");
    if (ownMemory(shared) > BRIDGE_BYTES) problems.push(`a bridge has ${megabytes(ownMemory(shared))} MB of its own`);
}

// A server's process is the one whose program or script is the command; its helpers are not counted as copies.
function copies({ processes }, command) {
    return processes.filter(({ argv }) => argv.slice(0, 2).includes(command)).length;
}

function own({ processes }) {
    return processes.filter(({ argv }) => argv[0] === program);
}

function ownMemory({ bridges }) {
    return Math.max(...bridges.map(({ dirty }) => dirty));
}

function end(pid) {
    try {
        process.kill(pid, "SIGKILL");
    } catch {
        // It has ended by itself.
    }
}
