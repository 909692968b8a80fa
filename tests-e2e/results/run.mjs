// What a model reads and writes for a few errands, with whole results and with outlines. Usage: see ../results.sh

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { count } from "../hosts/measure/tokens.mjs";
import { connect } from "./client.mjs";
import { issues, log, source } from "./files.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const { values: options } = parseArgs({
    options: { plugbay: { type: "string", default: process.env.PLUGBAY_BIN ?? join(HERE, "../../target/debug/plugbay") } },
});

// A conversation of so many tokens that a cache has, with so many turns to come. Prices are in those of a token that is read for
// the first time.
const CONVERSATION = 30_000;
const TURNS_TO_COME = 10;
const CACHED = 0.1;
const WRITTEN = 5;

const read = (path) => ({ name: "files__read_text_file", arguments: { path } });
const part = (how) => (handle) => ({ name: "read_result", arguments: { result: handle, ...how } });
const pages = (number) => Array.from({ length: number }, (_, at) => part({ page: at + 1, budget: 20_000 }));
const copied = (content) => ({ name: "files__write_file", arguments: { path: "copy.txt", content } });

// What the model calls: with whole results, and with outlines. A function is given the handle.
const ERRANDS = [
    ["the errors in a log of 300 KB", [read("app.log")], [read("app.log"), part({ grep: "ERROR" })]],
    ["counts of a list of 1,000 issues", [read("issues.json")], [read("issues.json"), part({ jq: "group_by(.state) | map({state: .[0].state, n: length})" })]],
    ["the same with `jq` beside the call", [read("issues.json")], [{ ...read("issues.json"), jq: "group_by(.state) | map({state: .[0].state, n: length})" }]],
    ["a log of 300 KB for another tool", [read("app.log"), () => copied(log())], [read("app.log"), (handle) => copied({ $result: handle })]],
    ["what a log of 300 KB is", [read("app.log")], [read("app.log")]],
    ["one function of a source file of 40 KB", [read("large.js")], [read("large.js"), part({ lines: "400-440" })]],
    ["one function of a source file of 24 KB", [read("small.js")], [read("small.js"), part({ lines: "200-240" })]],
    ["all of a source file of 24 KB", [read("small.js")], [read("small.js"), ...pages(1)]],
    ["all of a source file of 40 KB", [read("large.js")], [read("large.js"), ...pages(2)]],
    ["all of a log of 300 KB", [read("app.log")], [read("app.log"), ...pages(15)]],
    ["a source file of 8 KB", [read("tiny.js")], [read("tiny.js")]],
];

const folder = mkdtempSync(join(tmpdir(), "plugbay-results-"));
try {
    const texts = { "app.log": log(), "issues.json": issues(), "small.js": source(24), "large.js": source(40), "tiny.js": source(8) };
    for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text);
    const [whole, outlined] = [await connect(opening(false)), await connect(opening(undefined))];
    console.log("| the model wants | turns | reads | writes | price | with outlines: turns | reads | writes | price | |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|---|");
    for (const [name, without, withThem] of ERRANDS) {
        const [before, after] = [await errand(whole, without), await errand(outlined, withThem)];
        const ratio = after.price / before.price;
        const verdict = ratio > 1.02 ? `**${ratio.toFixed(1)} × as much**` : ratio < 0.98 ? `${(100 * (1 - ratio)).toFixed(0)} % less` : "the same";
        console.log(`| ${[name, ...row(before), ...row(after), verdict].join(" | ")} |`);
    }
    whole.stop();
    outlined.stop();
} finally {
    rmSync(folder, { recursive: true, force: true });
}

function opening(threshold) {
    const index = join(process.env.PLUGBAY_E2E_DIR, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    const plugbay = threshold === undefined ? {} : { plugbay: { results: { threshold } } };
    const files = { command: process.execPath, args: [index, folder], cwd: folder, ...plugbay };
    const config = join(folder, threshold === undefined ? "outlines.json" : "whole.json");
    writeFileSync(config, JSON.stringify({ mode: "search", mcpServers: { files } }));
    return { command: resolve(options.plugbay), args: ["serve", "--no-daemon", "--config", config], home: folder };
}

// What the calls cost, with the prices above. What is read or written stays in the conversation.
async function errand(client, calls) {
    const totals = { turns: 0, reads: 0, writes: 0 };
    let handle;
    for (const call of calls) {
        const input = typeof call === "function" ? call(handle) : call;
        const text = await client.execute(input);
        handle ??= text.match(/r_[\w-]{22}/)?.[0];
        totals.turns += 1;
        totals.writes += count(JSON.stringify(input));
        totals.reads += count(text);
    }
    const later = CACHED * TURNS_TO_COME;
    const price = totals.reads * (1 + later) + totals.writes * (WRITTEN + later) + totals.turns * CACHED * CONVERSATION;
    return { ...totals, price };
}

function row({ turns, reads, writes, price }) {
    return [turns, ...[reads, writes, price].map((number) => Math.round(number).toLocaleString("en-US"))];
}
