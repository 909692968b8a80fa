// A small MCP server that shows what a host does with lists that change, long names, and two kinds of content.
// Usage: node probe-server.mjs [names | plain N]
//
// With `names` it has a name of every length that matters, with `plain N` just N tools that say nothing of themselves.

import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";

import { EVERY_LENGTH, range } from "./lengths.mjs";

const LONGEST_HOLD_MS = 5_000;
const EMPTY = { type: "object", properties: {} };
const NEW = { description: "New.", inputSchema: EMPTY };
const number = { type: "integer" };
const CHANGE = { type: "object", properties: { name: { type: "string" }, pause: number, held: { type: "boolean" } } };
// Which of these names a request still has, and how they look there, tells the host's limit.
const LENGTHS = [40, 46, 50, 52, 56, 60, 64, 100, 116, 128];
const [special, plainTools] = process.argv.slice(2);

const revealed = new Set();
let listed = () => {};

const TOOLS = {
    reveal: {
        description: "Adds a tool, tells of it, and answers `pause` milliseconds later; if `held`, after the next list.",
        inputSchema: CHANGE,
        run: (input) => change(input, (name) => revealed.add(name), "revealed"),
    },
    conceal: {
        description: "Takes that tool away again, in the same way.",
        inputSchema: CHANGE,
        run: (input) => change(input, (name) => revealed.delete(name), "concealed"),
    },
    two_contents: {
        description: "Text and structured content that differ.",
        inputSchema: EMPTY,
        run: () => ({ content: [{ type: "text", text: "in-the-text" }], structuredContent: { where: "in-the-structure" } }),
    },
    sized: {
        description: "Text of so many characters, with the place written down every 100.",
        inputSchema: { type: "object", properties: { characters: number } },
        run: ({ characters }) => plain(ruler(characters)),
    },
    bare: {
        description: "Text that happens to be JSON, but no object.",
        inputSchema: { type: "object", properties: { text: { type: "string" } } },
        run: ({ text }) => plain(text),
    },
    slow: {
        description: "Answers after so many seconds.",
        inputSchema: { type: "object", properties: { seconds: number } },
        run: async ({ seconds }) => (await pause(seconds * 1000), plain("at last")),
    },
    crash: {
        description: "Ends the server in the middle of the call.",
        inputSchema: EMPTY,
        run: () => {
            process.stderr.write("the probe was told to crash\n");
            process.exit(7);
        },
    },
    "dashed-and.dotted": { description: "Characters that hosts rewrite.", inputSchema: EMPTY, run: () => plain("rewritten") },
};
for (const length of special === "names" ? EVERY_LENGTH : LENGTHS) {
    const name = `n${length}_`.padEnd(length, "x");
    TOOLS[name] = { description: "A long name.", inputSchema: EMPTY, run: () => plain(String(length)) };
}

if (special === "plain") {
    for (const name of Object.keys(TOOLS)) delete TOOLS[name];
    for (const count of range(1, Number(plainTools))) {
        TOOLS[`plain_${count}`] = { description: `The tool with number ${count}.`, inputSchema: EMPTY, run: () => plain(String(count)) };
    }
}

const METHODS = {
    initialize: ({ protocolVersion }) => ({
        protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "probe", version: "1" },
        instructions: ruler(12_000),
    }),
    ping: () => ({}),
    "tools/list": () => ({ tools: [...Object.entries(TOOLS), ...[...revealed].map((name) => [name, NEW])].map(shown) }),
    "tools/call": ({ name, arguments: input }) => (TOOLS[name] ? TOOLS[name].run(input ?? {}) : plain(`this is ${name}`)),
};

createInterface({ input: process.stdin }).on("line", async (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined || method === undefined) return;
    const handler = METHODS[method];
    if (!handler) return send({ id, error: { code: -32601, message: `no method ${method}` } });
    send({ id, result: await handler(params ?? {}) });
    if (method === "tools/list") listed();
});

async function change({ name, pause: milliseconds = 0, held = false }, apply, word) {
    apply(name);
    const again = new Promise((resolve) => (listed = resolve));
    send({ method: "notifications/tools/list_changed" });
    if (held) await Promise.race([again, pause(LONGEST_HOLD_MS)]);
    if (milliseconds > 0) await pause(milliseconds);
    return plain(`${word} ${name}`);
}

// What a server of today sends, if the name says so; else what keeps a tool in Claude Code's context.
function shown([name, { description, inputSchema }]) {
    const _meta = name.startsWith("plain") ? undefined : { "anthropic/alwaysLoad": true };
    return { name, description, inputSchema, _meta };
}

function plain(text) {
    return { content: [{ type: "text", text }] };
}

// "…@100…@200…": whatever a host cuts off, the last mark tells where.
function ruler(length) {
    let text = "";
    while (text.length < length) text += `@${text.length + 100}`.padStart(100, ".");
    return text.slice(0, length);
}

function send(message) {
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}
