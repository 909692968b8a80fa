// Measures what real hosts do, directly and through plugbay. Usage: see ../../hosts.sh

import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { HOSTS } from "../all.mjs";
import { newHome } from "../drive.mjs";
import { writeJson } from "../host/files.mjs";
import { installed } from "../installed.mjs";
import { differences } from "./differences.mjs";
import { PARTS } from "./parts.mjs";
import { report } from "./report.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));

const { values: options } = parseArgs({
    options: {
        measure: { type: "boolean" },
        host: { type: "string", multiple: true, default: HOSTS.map(({ name }) => name) },
        part: { type: "string", multiple: true },
        from: { type: "string" },
        pinned: { type: "boolean" },
        json: { type: "string" },
        plugbay: { type: "string", default: process.env.PLUGBAY_BIN ?? built() },
    },
});
const plugbay = resolve(options.plugbay);
const hosts = options.host.map((name) => called(name, HOSTS, "host"));
const parts = (options.part ?? (options.from ? [] : Object.keys(PARTS))).map((name) => PARTS[name] ?? stop(`no part ${name}; there are ${Object.keys(PARTS).join(", ")}`));

const before = options.from ? JSON.parse(readFileSync(options.from, "utf8")) : { hosts: {} };
const measured = { ...before, ...(parts.length > 0 && { date: new Date().toISOString().slice(0, 10), plugbay: version(plugbay) }) };
for (const host of parts.length > 0 ? hosts : []) {
    const found = installed(host, options.pinned ? "" : "@latest");
    if (!found.path) {
        measured.hosts[host.name] = { skipped: found.problem };
        say(`${host.name}: skipped, ${found.problem}`);
        continue;
    }
    const entry = (measured.hosts[host.name] = { ...measured.hosts[host.name], profile: host.profile, version: found.version });
    for (const part of parts) await measure(part, host, found.path, entry);
}
console.log(report(measured));
const list = differences(measured);
measured.differences = list;
keep();
console.log(list.length === 0 ? "No differences to the profiles." : `Differences to the profiles:\n${list.map((line) => `- ${line}`).join("\n")}`);
process.exit(Object.values(measured.hosts).every(({ skipped }) => skipped) ? 3 : list.length === 0 ? 0 : 4);

// A part that fails says so; the others are measured all the same.
async function measure(part, host, program, entry) {
    const run = { host, program, plugbay, keep, knows, say: (text) => say(`${host.name}  ${part.name}  ${text}`) };
    entry[part.name] = {};
    try {
        await part(run, entry[part.name]);
    } catch (error) {
        entry[part.name].problem = error.message;
        run.say(`not measured: ${error.stack}`);
    }
    keep();
}

// Whether this plugbay can be told so with `--host`.
function knows(profile) {
    const home = newHome();
    const config = join(home, "plugbay.json");
    writeJson(config, { mcpServers: { none: { command: process.execPath } } });
    const env = { PATH: process.env.PATH, HOME: home };
    const { stdout } = spawnSync(plugbay, ["--config", config, "hosts", "--json"], { encoding: "utf8", env });
    return stdout?.includes(`"${profile}"`) ?? false;
}

function keep() {
    if (options.json) writeFileSync(options.json, `${JSON.stringify(measured, null, 1)}\n`);
}

function version(program) {
    return spawnSync(program, ["--version"], { encoding: "utf8" }).stdout?.trim();
}

// What goes on, beside the result.
function say(text) {
    console.error(`measure: ${text}`);
}

function called(name, list, what) {
    const names = list.map((each) => each.name).join(", ");
    return list.find((each) => each.name === name) ?? stop(`no ${what} ${name}; there are ${names}`);
}

function stop(message) {
    console.error(`measure: ${message}`);
    process.exit(2);
}

function built() {
    return join(process.env.CARGO_TARGET_DIR ?? join(HERE, "../../../target"), "debug/plugbay");
}
