// A client that looks after tasks: the official TypeScript SDK v1 for legacy ones, v2 with ext-tasks for modern ones.
//
// Usage: node task-client.mjs PLAN.json     (with PLUGBAY_E2E_DIR naming what setup.sh installed)
//
// PLAN:   {"era": "legacy" | "modern", "command", "args", "env", "cwd", or instead of these "url",
//          "tool": one that answers by a task if it can, "arguments", "cancel": whether the task is called off instead}
// prints: {"tasks": [ids], "states": [in order, each once], "asked": how many elicitations came,
//          "listed": whether the task was in the list, if there is one, "result" | "error"}

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";

// Only a test that fails waits that long, also on a machine at ten times its load.
const PATIENCE_MS = 240_000;
const LOOK_EVERY_MS = 200;

const plan = JSON.parse(readFileSync(process.argv[2], "utf8"));
const load = createRequire(join(process.env.PLUGBAY_E2E_DIR, "package.json"));
const said = { tasks: new Set(), states: new Set(), asked: 0, listed: null };

await (plan.era === "modern" ? modern() : legacy());
process.stdout.write(JSON.stringify({ ...said, tasks: [...said.tasks], states: [...said.states] }));

async function legacy() {
    const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { CallToolResultSchema, ElicitRequestSchema } = load("@modelcontextprotocol/sdk/types.js");
    const client = new Client(
        { name: "task-client", version: "1.0.0" },
        { capabilities: { elicitation: {}, tasks: { requests: { elicitation: { create: {} } } } } },
    );
    client.setRequestHandler(ElicitRequestSchema, answer);
    await client.connect(connection({ StdioClientTransport, StreamableHTTPClientTransport }), { timeout: PATIENCE_MS });
    try {
        const tool = await untilListed(async () => (await client.listTools({}, { timeout: PATIENCE_MS })).tools);
        const { tasks } = client.experimental;
        const call = { name: plan.tool, arguments: plan.arguments };
        if (!tool.execution?.taskSupport) {
            said.result = await client.callTool(call);
            return;
        }
        for await (const message of tasks.callToolStream(call, CallToolResultSchema, { task: { ttl: PATIENCE_MS }, timeout: PATIENCE_MS })) {
            if (message.type === "taskCreated" || message.type === "taskStatus") await note(message.task);
            if (message.type === "taskCreated") {
                const { taskId } = message.task;
                if (client.getServerCapabilities().tasks.list) said.listed = await isListed(tasks, taskId);
                if (plan.cancel) await tasks.cancelTask(taskId);
            }
            if (message.type === "result") said.result = message.result;
            if (message.type === "error") said.error = { message: message.error.message };
        }
    } finally {
        await client.close();
    }
}

// The SDK itself refuses what it does not know, so ext-tasks wants to be shown a way around it.
async function modern() {
    const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
    const file = join(process.env.PLUGBAY_E2E_DIR, "node_modules/@modelcontextprotocol/ext-tasks/dist/client/index.js");
    const { createTaskSessionFromClient } = await import(pathToFileURL(file));
    const clientInfo = { name: "task-client", version: "2.0.0" };
    const protocolVersion = "2026-07-28";
    const clientCapabilities = { elicitation: { form: {} } };
    const client = new Client(clientInfo, { versionNegotiation: { mode: { pin: protocolVersion } } });
    await client.connect(connection({ StreamableHTTPClientTransport }), { timeout: PATIENCE_MS });
    try {
        await untilListed(async () => (await client.listTools({}, { cacheMode: "refresh", timeout: PATIENCE_MS })).tools);
        const session = createTaskSessionFromClient(client, {
            endpointId: "target",
            rawDispatch: post,
            v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
            onInputRequest: (request) => answer(request),
        });
        const execution = await session.callTool(plan.tool, plan.arguments);
        if (plan.cancel) await execution.cancel();
        const { outcome } = await execution.settle({ onEvent: (event) => event.task && note(event.task) });
        if (outcome.result) said.result = outcome.result;
        else said.error = { message: String(outcome.error?.message ?? outcome.status ?? outcome.kind) };
        await session.close();
    } finally {
        await client.close();
    }
}

async function post(request) {
    const { method, params } = request;
    const headers = {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": params.taskId ?? params.name,
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: `raw-${(post.count = (post.count ?? 0) + 1)}`, ...request });
    const response = await (await fetch(plan.url, { method: "POST", headers, body })).json();
    return response.error ? { kind: "error", error: response.error } : { kind: "result", result: response.result };
}

async function isListed(tasks, taskId) {
    let cursor;
    do {
        const page = await tasks.listTasks(cursor);
        if (page.tasks.some((task) => task.taskId === taskId)) return true;
        cursor = page.nextCursor;
    } while (cursor);
    return false;
}

function note(task) {
    said.tasks.add(task.taskId);
    said.states.add(task.status);
}

// The first thing that the form offers.
function answer({ params }) {
    said.asked += 1;
    const content = {};
    for (const [name, property] of Object.entries(params.requestedSchema.properties)) {
        content[name] = property.oneOf?.[0].const ?? property.enum?.[0] ?? "anything";
    }
    return { action: "accept", content };
}

function connection({ StdioClientTransport, StreamableHTTPClientTransport }) {
    if (plan.url) return new StreamableHTTPClientTransport(new URL(plan.url));
    const { command, args, env, cwd } = plan;
    return new StdioClientTransport({ command, args, env, cwd, stderr: "inherit" });
}

// What a gateway lists may still grow while its servers start for the first time.
async function untilListed(list) {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
        const tools = await list();
        const found = tools.find((tool) => tool.name === plan.tool);
        if (found) return found;
        if (Date.now() > deadline) throw new Error(`never listed: ${plan.tool}; listed: ${tools.map((tool) => tool.name)}`);
        await sleep(LOOK_EVERY_MS);
    }
}
