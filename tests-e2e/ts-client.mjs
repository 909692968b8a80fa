// A client made of the official TypeScript SDK, v1 or v2: connects over stdio or HTTP, lists, calls, prints.
//
// Usage: node ts-client.mjs PLAN.json     (with PLUGBAY_E2E_DIR naming what setup.sh installed)
//
// PLAN:   {"sdk": "v1" | "v2", "era": "legacy" | "modern",
//          "command", "args", "env", "cwd", or instead of these "url" and "type": "http" | "sse",
//          "expect": [names that must be listed], "calls": [{"name", "arguments"}], in which HANDLE stands for the last handle
//          of a stored result that was shown,
//          "afterwards": [names that must be listed after the calls],
//          "look": {"reads": [uris], "prompts": [{"name", "arguments"}], "completions": [params]}}
// prints: {"version", "era", "tools": [definitions], "results": [{"result", "progress"} | {"error", "progress"}],
//          "looked": {"resources", "templates", "prompts": [definitions], "asked": [{"result"} | {"error"}]}}

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

// Only a test that fails waits that long, also on a machine at ten times its load.
const PATIENCE_MS = 240_000;
const LOOK_EVERY_MS = 200;

const plan = JSON.parse(readFileSync(process.argv[2], "utf8"));
const load = createRequire(join(process.env.PLUGBAY_E2E_DIR, "package.json"));

const { client, transport } = plan.sdk === "v2" ? v2() : v1();
try {
    await client.connect(transport, { timeout: PATIENCE_MS });
    const tools = await listUntil(plan.expect);
    const results = [];
    for (const call of plan.calls) {
        results.push(await callTool(withHandle(call, results)));
    }
    await listUntil(plan.afterwards ?? []);
    const era = client.getProtocolEra?.() ?? "legacy";
    const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null;
    const looked = plan.look ? await look(plan.look) : null;
    process.stdout.write(JSON.stringify({ version, era, tools, results, looked }));
} finally {
    await client.close();
}

function withHandle(call, results) {
    const handles = JSON.stringify(results).match(/r_[\w-]{22}/g) ?? [];
    return JSON.parse(JSON.stringify(call).replaceAll("HANDLE", handles.at(-1)));
}

function v1() {
    const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { SSEClientTransport } = load("@modelcontextprotocol/sdk/client/sse.js");
    const client = new Client({ name: "ts-client", version: "1.0.0" });
    return { client, transport: connect({ StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport }) };
}

function v2() {
    const { Client, StreamableHTTPClientTransport, SSEClientTransport } = load("@modelcontextprotocol/client");
    const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");
    const mode = plan.era === "modern" ? { pin: "2026-07-28" } : "legacy";
    const client = new Client({ name: "ts-client", version: "2.0.0" }, { versionNegotiation: { mode } });
    return { client, transport: connect({ StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport }) };
}

function connect({ StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport }) {
    if (plan.type === "sse") return new SSEClientTransport(new URL(plan.url));
    if (plan.url) return new StreamableHTTPClientTransport(new URL(plan.url));
    const { command, args, env, cwd } = plan;
    return new StdioClientTransport({ command, args, env, cwd, stderr: "inherit" });
}

// What a gateway lists may still grow while its servers start for the first time.
async function listUntil(expected) {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
        const tools = await listAll();
        const missing = expected.filter((name) => !tools.some((tool) => tool.name === name));
        if (missing.length === 0) return tools;
        if (Date.now() > deadline) throw new Error(`never listed: ${missing}; listed: ${tools.map((tool) => tool.name)}`);
        await sleep(LOOK_EVERY_MS);
    }
}

async function listAll() {
    if (plan.sdk === "v2") {
        // Follows the pages itself.
        return (await client.listTools({}, { cacheMode: "refresh", timeout: PATIENCE_MS })).tools;
    }
    const tools = [];
    let cursor;
    do {
        const page = await client.listTools(cursor ? { cursor } : {}, { timeout: PATIENCE_MS });
        tools.push(...page.tools);
        cursor = page.nextCursor;
    } while (cursor);
    return tools;
}

async function look({ reads, prompts, completions }) {
    const asks = [
        ...reads.map((uri) => () => client.readResource({ uri })),
        ...prompts.map((prompt) => () => client.getPrompt(prompt)),
        ...completions.map((params) => () => client.complete(params)),
    ];
    const asked = [];
    for (const ask of asks) {
        asked.push(await outcome(ask));
    }
    return {
        resources: (await client.listResources()).resources,
        templates: (await client.listResourceTemplates()).resourceTemplates,
        prompts: (await client.listPrompts()).prompts,
        asked,
    };
}

async function outcome(ask) {
    try {
        return { result: await ask() };
    } catch (error) {
        return { error: { code: error.code ?? null, message: String(error.message) } };
    }
}

async function callTool(call) {
    const progress = [];
    const options = { timeout: PATIENCE_MS, onprogress: (step) => progress.push(step) };
    try {
        const called = plan.sdk === "v2" ? client.callTool(call, options) : client.callTool(call, undefined, options);
        return { result: await called, progress };
    } catch (error) {
        return { error: { code: error.code ?? null, message: String(error.message), data: error.data ?? null }, progress };
    }
}
