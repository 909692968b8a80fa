// What the model does in each scenario, and in front of which server. See player.mjs for what a step is.

import { join } from "node:path";
import { fileURLToPath } from "node:url";

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
