// What the model does in each scenario, and in front of which server. See player.mjs for what a step is.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { count, prompt } from "./measure/tokens.mjs";

import { writeJson } from "./host/files.mjs";

const PROBE = { command: process.execPath, args: [fileURLToPath(new URL("probe-server.mjs", import.meta.url))] };

// A result that is a bare number is one that Gemini CLI refuses; see the probe `bare-number`.
const CALC = { tool: "calc__factorize", input: { number: 84 }, result: "7" };
const ECHO = { tool: "everything__echo", input: { message: "over the wire" }, result: "Echo: over the wire" };

const STRUCTURED = { tool: "everything__get-structured-content", input: { location: "Chicago" } };

const ACTIVATE = [
    { tool: "gateway_activate", input: { name: "calc" }, result: "calc", absent: [CALC.tool] },
    { ...CALC, now: true },
];

const execute = ({ tool, input, result }) => ({ tool: "execute_tool", input: { name: tool, arguments: input }, result });

// What a model writes for `run-code`.
const REMEMBER = `const log = await tools.files.read_text_file({ path: "app.log" });
const jobs = [...log.matchAll(/"(job \\d+)" done in 99[1-9] ms/g)].map((match) => match[1]);
await tools.memory.create_entities({
  entities: jobs.map((name) => ({ name, entityType: "job", observations: ["slow"] })),
});
return { remembered: jobs.length };`;

export const SCENARIOS = {
    // Every tool is in the list.
    all: plugbay("all", [CALC, ECHO]),

    // Two tools lead to all others.
    search: plugbay("search", [
        { tool: "search_tools", input: { query: "prime factors of a number" }, result: CALC.tool, absent: [CALC.tool] },
        execute(CALC),
        { tool: "search_tools", input: { query: "echo a message back" }, result: ECHO.tool },
        execute(ECHO),
    ]),

    // One tool per server.
    suite: plugbay("suite", [
        { tool: "calc_suite", input: { action: "introspect" }, result: "factorize", absent: [CALC.tool] },
        { tool: "calc_suite", input: { action: "call", subtool: "factorize", args: CALC.input }, result: CALC.result },
    ]),

    // Hosts that run code: `auto` gives every tool, and a result is a value in their script. For codex and opencode-code.
    code: plugbay(undefined, [{ ...STRUCTURED, field: "temperature", result: "VALUE number" }, ECHO]),

    // A server behind plugbay changes its tools in the middle of a conversation.
    changing: plugbay("all", reveal({ pause: 2000 }), () => ({ probe: PROBE })),

    // A server's tools are there in the very next turn.
    activate: plugbay("activate", ACTIVATE),

    // For hosts that never list again: the result names the tools, and another tool calls them.
    "activate-through": plugbay("activate", [{ ...ACTIVATE[0], result: CALC.tool }, execute(CALC)]),

    // A result of 300 KB goes to the next tool by its handle: the bytes arrive, for at most 400 tokens in all.
    handle: {
        ...plugbay("search", [
            execute({ tool: "files__read_text_file", input: { path: "app.log" }, result: /r_[\w-]{22}/ }),
            {
                ...execute({ tool: "files__write_file", result: "copy.log" }),
                input: ([outline]) => ({
                    name: "files__write_file",
                    arguments: { path: "copy.log", content: { $result: outline.match(/r_[\w-]{22}/)[0] } },
                }),
            },
        ], files),
        problem: unequal,
    },

    // A script of the model calls two servers: each slow job of a log goes into the memory.
    "run-code": {
        ...plugbay("code", [{ tool: "run_code", input: { code: REMEMBER }, result: new RegExp(`"remembered":\\s*${slow().length}`) }], remembering),
        problem: forgotten,
    },

    // A script that returns a bare number, which Gemini CLI refuses from any server.
    "run-code-number": plugbay("code", [{ tool: "run_code", input: { code: "return 6 * 7;" }, result: "42" }]),

    // `run-code` with a call after the other.
    "run-calls": {
        ...plugbay("search", [
            execute({ tool: "files__read_text_file", input: { path: "app.log" }, result: /r_[\w-]{22}/ }),
            {
                ...execute({ tool: "read_result", result: slow().at(-1) }),
                input: ([outline]) => ({ name: "read_result", arguments: { result: outline.match(/r_[\w-]{22}/)[0], grep: "in 99[1-9] ms" } }),
            },
            execute({ tool: "memory__create_entities", input: { entities: slow().map(entity) }, result: slow().at(-1) }),
        ], remembering),
        problem: forgotten,
    },

    // And they are gone in the turn after it is put away.
    deactivate: plugbay("activate", [
        ...ACTIVATE,
        { tool: "gateway_deactivate", input: { name: "calc" }, result: "off" },
        { tool: "gateway_status", absent: [CALC.tool] },
    ]),
};

// The same against a server of our own, without plugbay, to learn what a host does by itself.
export const PROBES = {
    content: probe([{ tool: "two_contents" }]),
    "bare-number": probe([{ tool: "bare", input: { text: "42" }, result: "42" }]),
    "bare-list": probe([{ tool: "bare", input: { text: '["a", "b"]' }, result: "b" }]),
    "bare-object": probe([{ tool: "bare", input: { text: '{"a": 1}' }, result: "a" }]),
    names: probe([{ tool: "dotted", result: "rewritten" }]),
    // The list changes, and the result comes so many milliseconds after the notification, or after the host's next list.
    ...each([0, 20, 50, 100, 250, 500, 1000, 2000], (pause) => [`reveal-${pause}`, probe(reveal({ pause }))]),
    ...each([0, 20, 50, 100], (pause) => [`held-${pause}`, probe(reveal({ pause, held: true }))]),
    // The same with a tool that does not ask to be kept in context.
    "held-plain": probe(reveal({ pause: 100, held: true }, "plain_tool", false)),
    ...each([10, 20, 40, 60, 100, 200, 400], (kilo) => [`result-${kilo}k`, result(kilo)]),
};

function each(numbers, entry) {
    return Object.fromEntries(numbers.map(entry));
}

function plugbay(mode, steps, servers = usual) {
    const server = (places) => {
        const config = join(places.home, "plugbay.json");
        writeJson(config, { mode, mcpServers: servers(places) });
        return { name: "plugbay", command: places.plugbay, args: ["serve", "--no-daemon", "--config", config] };
    };
    return { server, steps };
}

// Three samples, and a server that we did not write.
function usual({ plugbay, peers }) {
    const sample = (name) => ({ command: plugbay, args: ["__sample", name] });
    const index = join(peers, "node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    const everything = { command: process.execPath, args: [index] };
    return { calc: sample("calc"), clock: sample("clock"), notes: sample("notes"), everything };
}

// A server for the folder in which the host works, which has a log. Some hosts give it that folder as a root.
function files({ peers, home }) {
    const folder = join(home, "work");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "app.log"), log());
    const index = join(peers, "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    return { files: { command: process.execPath, args: [index, folder], cwd: folder } };
}

// The same folder, and a memory.
function remembering(places) {
    const index = join(places.peers, "node_modules/@modelcontextprotocol/server-memory/dist/index.js");
    const memory = { command: process.execPath, args: [index], env: { MEMORY_FILE_PATH: join(places.home, "memory.jsonl") } };
    return { ...files(places), memory };
}

function slow() {
    return [...log().matchAll(/"(job \d+)" done in 99[1-9] ms/g)].map(([, name]) => name);
}

function entity(name) {
    return { name, entityType: "job", observations: ["slow"] };
}

function log() {
    const line = (_, n) => `2026-01-02T03:04:${String(n % 60).padStart(2, "0")}Z INFO "job ${n}" done in ${(n * 13) % 997} ms\té\\x\n`;
    return Array.from({ length: 5600 }, line).join("").slice(0, 300_000);
}

// The memory lacks a job, or has another.
function forgotten({ home, turns, requests }) {
    const lines = readFileSync(join(home, "memory.jsonl"), "utf8").split("\n").filter(Boolean);
    const names = lines.map((line) => JSON.parse(line).name);
    if (names.join() !== slow().join()) return `the memory has ${names.join()}, not ${slow().join()}`;
    // Titles and the like are requests without tools.
    const own = requests.filter(({ body }) => body?.tools?.length > 0);
    const sent = own.reduce((sum, request) => sum + count(prompt(request)), 0);
    console.log(`${names.length} jobs were remembered for ${spent(turns)} tokens in the context, and ${sent} in ${own.length} requests`);
    return undefined;
}

// The copy is no copy, or the model had to read and write too much for it.
function unequal({ home, turns }) {
    const [from, to] = ["app.log", "copy.log"].map((name) => readFileSync(join(home, "work", name), "utf8"));
    if (from !== to) return `the copy has ${to.length} characters, the log ${from.length}`;
    const tokens = spent(turns);
    console.log(`${from.length} characters were copied for ${tokens} tokens`);
    return tokens > 400 ? `the copy cost ${tokens} tokens` : undefined;
}

// The tokens of calls and results. Those with which the host finds its deferred tools do not count.
function spent(turns) {
    const texts = turns.flatMap(({ isOfStep, result, input }) => [isOfStep ? result : "", input ? JSON.stringify(input) : ""]);
    return texts.reduce((sum, text) => sum + count(text), 0);
}

function probe(steps) {
    return { server: () => ({ name: "probe", ...PROBE }), steps };
}

function reveal(how, name = "fresh", now = true) {
    return [
        { tool: "reveal", input: { name, ...how }, result: "revealed", absent: [name] },
        { tool: name, result: `this is ${name}`, now },
        { tool: "conceal", input: { name, ...how }, result: "concealed" },
        { tool: "two_contents", absent: [name] },
    ];
}

function result(kilo) {
    return probe([{ tool: "sized", input: { characters: kilo * 1000 } }]);
}
