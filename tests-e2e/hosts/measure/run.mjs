// Measures what real hosts do, directly and through plugbay. Usage: see ../../hosts.sh

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { HOSTS } from "../all.mjs";
import { installed } from "../installed.mjs";
import { differences, PROFILES } from "./differences.mjs";
import { PARTS } from "./parts.mjs";
import { report } from "./report.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));

const { values: options } = parseArgs({
    options: {
        measure: { type: "boolean" },
        host: { type: "string", multiple: true, default: HOSTS.map(({ name }) => name) },
        part: { type: "string", multiple: true, default: Object.keys(PARTS) },
        pinned: { type: "boolean" },
        json: { type: "string" },
        plugbay: { type: "string", default: process.env.PLUGBAY_BIN ?? built() },
    },
});
const plugbay = resolve(options.plugbay);
const hosts = options.host.map((name) => called(name, HOSTS, "host"));
const parts = options.part.map((name) => PARTS[name] ?? stop(`no part ${name}; there are ${Object.keys(PARTS).join(", ")}`));

const measured = { date: new Date().toISOString().slice(0, 10), plugbay: version(plugbay), hosts: {} };
for (const host of hosts) {
    const found = installed(host, options.pinned ? "" : "@latest");
    if (!found.path) {
        measured.hosts[host.name] = { skipped: found.problem };
        say(`${host.name}: skipped, ${found.problem}`);
        continue;
    }
    const entry = (measured.hosts[host.name] = { profile: host.profile, version: found.version });
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

function knows(profile) {
    return PROFILES.some(({ name }) => name === profile);
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
