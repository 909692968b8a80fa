// Moves the servers of real hosts to plugbay and back. Usage: see ../setup-hosts.sh

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { startModel } from "./model-stub.mjs";
import { Player } from "./player.mjs";
import { endAll, run } from "./setup/run.mjs";
import { startWeather, world } from "./setup/world.mjs";
import { HOSTS } from "./setup/wired.mjs";

const { values: options } = parseArgs({
    options: {
        plugbay: { type: "string", default: process.env.PLUGBAY_BIN ?? built() },
        host: { type: "string", multiple: true, default: HOSTS.map(({ id }) => id) },
        keep: { type: "boolean" },
    },
});
// The hosts that are started. All of them have files, and setup moves the servers of all.
const driven = HOSTS.filter(({ id }) => options.host.includes(id));

const home = mkdtempSync(join(tmpdir(), "plugbay-setup-"));
process.on("exit", () => {
    endAll();
    if (options.keep) console.error(`kept: ${home}`);
    else rmSync(home, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));

const weather = await startWeather(process.env.PLUGBAY_E2E_DIR, home);
const model = await startModel({ next: (turn) => player.next(turn) });
let player = new Player([]);

mkdirSync(join(home, "bin"));
mkdirSync(join(home, "work"));
symlinkSync(resolve(options.plugbay), join(home, "bin/plugbay"));
const { files, names } = world({ home, model: model.url, weather, peers: process.env.PLUGBAY_E2E_DIR });
for (const host of driven) if (host.command) symlinkSync(host.path()[0], join(home, "bin", host.command));

const rows = Object.fromEntries(driven.map(({ name }) => [name, { host: name }]));
const problems = [];

// A host's first start writes bookkeeping into its own files; what is compared later is what it leaves.
for (const host of driven) {
    const listed = await host.listed(at(host));
    rows[host.name].before = listed.names.length;
    expect(listed.names.length > 0 && !listed.names.includes("plugbay"), `${host.name} lists ${listed.output}`);
}
const before = contents();

// There and back, with nothing in between: every byte is as it was.
await plugbay("setup", "--yes");
await plugbay("setup", "--undo");
for (const file of changed(before)) problems.push(`${file} differs after setup and undo`);

const started = Date.now();
const report = JSON.parse((await plugbay("setup", "--yes", "--json")).output);
const seconds = (Date.now() - started) / 1000;
const moved = report.servers.filter(({ result }) => result === "moves").map(({ name }) => name);
for (const name of names) expect(moved.includes(name), `${name} has not moved: ${JSON.stringify(report.servers)}`);
expect(read(".claude/settings.json").includes("mcp__plugbay__filesystem__write_file"), "the deny rule has no counterpart");
const again = JSON.parse((await plugbay("setup", "--yes", "--json")).output);
expect(again.stage === "nothingToDo", `a second setup wants to change ${JSON.stringify(again.diffs)}`);

for (const host of driven) {
    const row = rows[host.name];
    const { mode, before, now } = report.hosts.find(({ id }) => id === host.id).cost;
    Object.assign(row, { mode, tokens: `${before} → ${now}` });
    const listed = await host.listed(at(host));
    row.listed = listed.names.join(" ") === "plugbay" && listed.connected;
    expect(row.listed, `${host.name} lists ${listed.output}`);
    player = new Player([step(mode)], host.search);
    const { output } = await run(...host.play(at(host)));
    row.called = player.passed;
    expect(row.called, `${host.name}: ${JSON.stringify(player.turns.map(({ problem, called }) => problem ?? called))}\n${output}`);
}

await plugbay("setup", "--undo");
const left = new Set(changed(before));
for (const host of HOSTS) {
    const added = [];
    for (const file of host.files.filter((file) => left.has(file))) {
        const members = host.added?.(before[file], read(file));
        if (members) added.push(...members);
        else problems.push(`${file} differs after the hosts have run and setup was undone:\n${read(file)}`);
    }
    if (driven.includes(host)) rows[host.name].restored = added.length === 0 ? "every byte" : `all; the host added ${added.join(", ")}`;
}
for (const path of [".config/plugbay/config.jsonc", ".claude/skills/plugbay"]) {
    expect(!existsSync(join(home, path)), `${path} is left behind`);
}

await model.stop();
weather.stop();
console.log(table(Object.values(rows)));
console.log(`\n${names.length} servers moved by one command in ${seconds.toFixed(1)} s`);
for (const problem of problems) console.log(`\nFAIL: ${problem}`);
process.exit(problems.length === 0 ? 0 : 1);

// A tool of a server that plugbay has taken over, as the mode offers it.
function step(mode) {
    const [message, result] = ["through plugbay", "Echo: through plugbay"];
    switch (mode) {
        case "all":
            return { tool: "everything__echo", input: { message }, result };
        case "suite":
            return { tool: "everything_suite", input: { action: "call", subtool: "echo", args: { message } }, result };
        default:
            return { tool: "execute_tool", input: { name: "everything__echo", arguments: { message } }, result };
    }
}

function at(host) {
    return { home, model: model.url, path: host.path(), cwd: join(home, "work"), env: surroundings() };
}

function surroundings() {
    const { PATH, LANG } = process.env;
    return { PATH: [join(home, "bin"), PATH].join(delimiter), LANG, HOME: home, TERM: "dumb", NO_COLOR: "1" };
}

async function plugbay(...args) {
    const result = await run([join(home, "bin/plugbay")], args, { cwd: join(home, "work"), env: surroundings() });
    expect(result.code === 0, `plugbay ${args.join(" ")}: exit code ${result.code}\n${result.output}${result.errors}`);
    return result;
}

function contents() {
    return Object.fromEntries(files.map((file) => [file, read(file)]));
}

function changed(before) {
    return files.filter((file) => read(file) !== before[file]);
}

function read(file) {
    return readFileSync(join(home, file), "utf8");
}

function expect(holds, problem) {
    if (!holds) problems.push(problem);
}

function table(rows) {
    const columns = ["host", "before", "listed", "mode", "tokens", "called", "restored"];
    const titles = ["HOST", "SERVERS", "LISTS PLUGBAY", "MODE", "TOKENS", "TOOL CALL", "AFTER UNDO"];
    const text = (value) => (value === true ? "yes" : value === false ? "NO" : String(value ?? ""));
    const cells = [titles, ...rows.map((row) => columns.map((column) => text(row[column])))];
    const widths = titles.map((_, index) => Math.max(...cells.map((row) => row[index].length)));
    return cells.map((row) => row.map((cell, index) => cell.padEnd(widths[index])).join("  ").trimEnd()).join("\n");
}

function built() {
    const own = fileURLToPath(new URL("../../target", import.meta.url));
    return join(process.env.CARGO_TARGET_DIR ?? own, "debug/plugbay");
}
