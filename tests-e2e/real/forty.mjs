// Lists many real servers by hand and through plugbay, and compares. Usage: see ../forty.sh

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { Client } from "./client.mjs";
import { listTools, nameless } from "./definitions.mjs";
import { plugbay, serveAlone } from "./plugbay.mjs";
import { configuration, servers, surroundings } from "./servers.mjs";
import { median, table } from "./table.mjs";

const BY_HAND_MS = 120_000;

const { values: options } = parseArgs({
    options: {
        plugbay: { type: "string", default: plugbay() },
        rounds: { type: "string", default: "3" },
        "at-once": { type: "string", default: "8" },
        only: { type: "string", multiple: true },
        patience: { type: "string", default: "300" },
        ratio: { type: "string", default: "1.3" },
        keep: { type: "boolean", default: false },
    },
});

const scratch = mkdtempSync(join(tmpdir(), "plugbay-forty-"));
process.on("exit", () => options.keep || rmSync(scratch, { recursive: true, force: true }));
const chosen = servers(scratch).filter(({ name }) => !options.only || options.only.includes(name));

await byHand(chosen);
// Some servers write the same definition differently in each era, and plugbay opens in the modern one where it can.
const modern = await byHand(chosen, (client) => client.discover({ name: "real-host" }));
const rounds = [];
for (let round = 1; round <= Number(options.rounds); round += 1) {
    const direct = await byHand(chosen);
    const listing = chosen.filter(({ name }) => direct.servers.get(name).tools);
    const through = await throughPlugbay(listing, direct, round);
    rounds.push({ direct, through, listing });
    console.log(`round ${round}: by hand ${direct.seconds.toFixed(1)} s, through plugbay ${through.seconds ? `${through.seconds.toFixed(1)} s` : "never all"}`);
}
process.exit(report(rounds) ? 0 : 1);

// Starts the servers, some at a time, and lists each; a server that has listed stays, as it does under plugbay.
async function byHand(chosen, open = (client) => client.initialize()) {
    const start = performance.now();
    const found = new Map();
    const clients = [];
    const queue = [...chosen];
    const worker = async () => {
        for (let server; (server = queue.shift()); ) found.set(server.name, await listDirectly(server, open, start, clients));
    };
    await Promise.all(Array.from({ length: Number(options["at-once"]) }, worker));
    const seconds = since(start);
    await Promise.all(clients.map((client) => client.close()));
    return { seconds, servers: found };
}

async function listDirectly({ command, args, env }, open, start, clients) {
    const client = new Client(command, args, { cwd: scratch, env: { ...surroundings(scratch), ...env } });
    clients.push(client);
    const slow = setTimeout(() => client.kill(), BY_HAND_MS);
    try {
        await open(client);
        return { tools: await listTools(client), seconds: since(start) };
    } catch (error) {
        return { problem: `${error.message} ${client.said.trim().split("\n").at(-1)}` };
    } finally {
        clearTimeout(slow);
    }
}

// One gateway with all servers and an empty cache; listed again at each notification until nothing is missing.
async function throughPlugbay(listing, direct, round) {
    const home = mkdtempSync(join(scratch, "home-"));
    const file = join(home, "forty.json");
    writeFileSync(file, JSON.stringify(configuration(listing, { mode: "all" }), null, 2));
    const start = performance.now();
    const gateway = serveAlone(resolve(options.plugbay), file, { cwd: scratch, home });
    const seen = new Map();
    try {
        await gateway.initialize();
        const seconds = await untilComplete(gateway, listing, direct, seen, start);
        return { seconds, servers: seen };
    } finally {
        await gateway.close();
        if (options.keep) writeFileSync(join(scratch, `plugbay-${round}.log`), gateway.said);
    }
}

async function untilComplete(gateway, listing, direct, seen, start) {
    let wake = () => {};
    let changed = false;
    gateway.on("notifications/tools/list_changed", () => {
        changed = true;
        wake();
    });
    for (let left; (left = Number(options.patience) - since(start)) > 0; ) {
        changed = false;
        note(await listTools(gateway), listing, seen, since(start));
        if (listing.every(({ name }) => seen.get(name)?.tools.size >= direct.servers.get(name).tools.size)) return since(start);
        if (!changed) await new Promise((done) => setTimeout((wake = done), left * 1000));
    }
    return undefined;
}

// Sorts the listed tools by server, and notes when each server was first seen.
function note(tools, listing, seen, now) {
    for (const { name: server } of listing) {
        const own = [...tools].filter(([name]) => name.startsWith(`${server}__`));
        if (own.length === 0) continue;
        const definitions = new Map(own.map(([name, text]) => [name.slice(server.length + 2), text]));
        seen.set(server, { tools: definitions, seconds: seen.get(server)?.seconds ?? now });
    }
}

// How plugbay's definitions of a server compare with the server's own, all of them in the same era.
function compare(name, legacy, through) {
    if (!through) return { verdict: "not listed", problem: "not listed through plugbay" };
    const problem = difference(legacy, through);
    if (!problem) return { verdict: "equal" };
    const other = modern.servers.get(name).tools;
    return other && !difference(other, through) ? { verdict: "equal, in the modern era" } : { verdict: "DIFFER", problem };
}

// What differs first between two lists of a server, if anything.
function difference(direct, through) {
    for (const [name, text] of direct) {
        const other = through.get(name);
        if (other === undefined) return `${name} is missing`;
        if (nameless(other) !== nameless(text)) return `${name} differs:\n  direct  ${text}\n  plugbay ${other}`;
    }
    const more = [...through.keys()].find((name) => !direct.has(name));
    return more && `${more} is listed through plugbay only`;
}

function report(rounds) {
    const differing = rounds.flatMap(({ direct, through, listing }, index) =>
        listing.flatMap(({ name }) => {
            const { problem } = compare(name, direct.servers.get(name).tools, through.servers.get(name)?.tools);
            return problem ? [`round ${index + 1}: ${name}: ${problem}`] : [];
        }),
    );
    const { direct, through, listing } = rounds.at(-1);
    const rows = chosen.map((server) => row(server, direct.servers.get(server.name), through.servers.get(server.name)));
    console.log(table(["server", "from", "tools", "by hand (s)", "plugbay (s)", "definitions"], rows));
    const total = [...direct.servers.values()].reduce((sum, { tools }) => sum + (tools?.size ?? 0), 0);
    console.log(`${listing.length} of ${chosen.length} servers list directly, ${total} tools`);
    differing.forEach((line) => console.log(line));
    return fastEnough(rounds) && differing.length === 0;
}

function row({ name, registry }, direct, through) {
    if (!direct.tools) return [name, registry, "–", "–", "–", `does not list directly: ${direct.problem}`];
    const { verdict } = compare(name, direct.tools, through?.tools);
    return [name, registry, direct.tools.size, direct.seconds.toFixed(1), through?.seconds.toFixed(1) ?? "never", verdict];
}

function fastEnough(rounds) {
    if (rounds.some(({ through }) => through.seconds === undefined)) {
        console.log("the list through plugbay was never full");
        return false;
    }
    const ratio = median(rounds.map(({ direct, through }) => through.seconds / direct.seconds));
    const limit = Number(options.ratio);
    console.log(`time to the full list, median of ${rounds.length}: ${ratio.toFixed(2)} of by hand, ${options["at-once"]} at a time${limit ? ` (at most ${limit})` : ""}`);
    return limit === 0 || ratio <= limit;
}

function since(start) {
    return (performance.now() - start) / 1000;
}
