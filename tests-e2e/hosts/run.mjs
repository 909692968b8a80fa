// Drives real hosts, with a script in place of their model. Usage: see ../hosts.sh

import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { HOSTS } from "./all.mjs";
import { drive, newHome, tapped } from "./drive.mjs";
import { installed } from "./installed.mjs";
import { observed } from "./observed.mjs";
import { Player } from "./player.mjs";
import { PROBES, SCENARIOS } from "./scenarios.mjs";
import { render, summary } from "./table.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));

const { values: options } = parseArgs({
    options: {
        host: { type: "string", multiple: true, default: HOSTS.map(({ name }) => name) },
        scenario: { type: "string", multiple: true, default: ["all", "search"] },
        times: { type: "string", default: "1" },
        plugbay: { type: "string", default: process.env.PLUGBAY_BIN ?? built() },
        keep: { type: "string" },
    },
});

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

async function play(host, program, name, { server, steps, problem }) {
    const home = newHome();
    const log = join(home, "messages.jsonl");
    const player = new Player(steps, host.search);
    const real = server({ plugbay: resolve(options.plugbay), peers: process.env.PLUGBAY_E2E_DIR, home });
    const { requests, ...ended } = await drive(host, program, { home, servers: [tapped(log, real)], player });
    const wrong = player.passed ? problem?.({ home, turns: player.turns, requests }) : undefined;
    if (wrong) console.log(`${host.name}, ${name}: ${wrong}`);
    const outcome = { passed: player.passed && !wrong, turns: player.turns, ...ended, observed: observed(log) };
    if (options.keep) keep(`${host.name}-${name}`, { outcome, requests });
    return outcome;
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
