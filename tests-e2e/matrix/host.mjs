// A host made of the official TypeScript SDK, v1 (legacy) or v2 (modern): goes through every row of the matrix
// with each server behind the gateway and prints what it has seen.
//
// Usage: node host.mjs PLAN.json     (with PLUGBAY_E2E_DIR naming what setup.sh installed)
//
// PLAN:   {"era": "legacy" | "modern", "servers": [names], "command", "args", "env", "cwd", or instead of these "url"}
// prints: {SERVER: {ROW: what was seen, or {"failed": why}}}

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// Only a row that fails waits that long, also on a machine at ten times its load.
const PATIENCE_MS = 120_000;
const plan = JSON.parse(readFileSync(process.argv[2], "utf8"));
const load = createRequire(join(process.env.PLUGBAY_E2E_DIR, "package.json"));
const modern = plan.era === "modern";

const capabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} };
// The notifications that the gateway has sent, by method, and who waits for more of them.
const notifications = new Map();
const waiting = new Set();

const { client, transport } = modern ? v2() : v1();
await client.connect(transport, { timeout: PATIENCE_MS });
const seen = {};
try {
    // To a legacy host lists are announced without being asked for.
    const filter = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
    if (modern) await client.listen(filter);
    await until("tools/list_changed", async () => {
        const names = (await tools()).map((tool) => tool.name);
        return plan.servers.every((server) => names.includes(`${server}__touch`));
    });
    for (const server of plan.servers) seen[server] = await goThrough(server);
    process.stdout.write(JSON.stringify(seen));
} finally {
    await client.close();
}

async function goThrough(server) {
    const rows = {
        tools: lookAtTools,
        resources: lookAtResources,
        prompts: lookAtPrompts,
        completion: complete,
        sampling: (server) => ask(server, "sampling"),
        "elicitation form": (server) => ask(server, "form"),
        "elicitation url": (server) => ask(server, "url"),
        roots: (server) => ask(server, "roots"),
        progress,
        cancellation: cancel,
        logging,
        pagination: listEverything,
        "list change": growLists,
        "resource update": subscribe,
        tasks: work,
    };
    const seen = {};
    for (const [row, look] of Object.entries(rows)) {
        try {
            seen[row] = await soon(look(server));
        } catch (error) {
            seen[row] = { failed: String(error.message ?? error) };
        }
    }
    return seen;
}

async function lookAtTools(server) {
    const definition = (await tools()).find((tool) => tool.name === `${server}__echo`);
    const { content, structuredContent, _meta } = await call(server, "echo", { message: "héllo \"world\" 😀" });
    const failure = await call(server, "fail", {});
    return {
        definition,
        result: { content, structuredContent, from: _meta?.["example.com/from"] },
        failure: { isError: failure.isError, text: failure.content[0].text },
    };
}

async function lookAtResources(server) {
    const read = async (path) => (await client.readResource({ uri: `${server}://${path}` })).contents[0];
    const all = await client.listResources();
    return {
        listed: all.resources.find((resource) => resource.uri === `${server}://notes/third`),
        text: await read("notes/watched"),
        blob: await read("notes/pixel"),
        byTemplate: await read("note/7"),
    };
}

async function lookAtPrompts(server) {
    const all = await client.listPrompts();
    const name = `${server}__greet`;
    return {
        listed: all.prompts.find((prompt) => prompt.name === name),
        messages: (await client.getPrompt({ name, arguments: { who: "Ada" } })).messages,
    };
}

async function complete(server) {
    const ask = async (ref, name) => (await client.complete({ ref, argument: { name, value: "par" } })).completion;
    return {
        prompt: await ask({ type: "ref/prompt", name: `${server}__greet` }, "who"),
        template: await ask({ type: "ref/resource", uri: `${server}://note/{id}` }, "id"),
    };
}

async function ask(server, what) {
    return JSON.parse(await say(server, "ask", { what }));
}

// The call ends when its last step is known to have come: the SDK forgets what arrives together with the result.
async function progress(server) {
    const steps = [];
    let proceeded;
    const onprogress = (step) => {
        steps.push([step.progress, step.total, step.message]);
        if (steps.length === 3) proceeded = call(server, "proceed", {});
    };
    const text = textOf(await call(server, "count", {}, { onprogress }));
    return { steps, text, proceeded: textOf(await proceeded) };
}

async function cancel(server) {
    const controller = new AbortController();
    const options = { signal: controller.signal, onprogress: () => controller.abort() };
    const ended = await call(server, "wait", {}, options).then(() => "answered", () => "given up");
    return { ended, text: textOf(await call(server, "cancelled", {})) };
}

// Of two messages the less serious one must not come.
async function logging(server) {
    notifications.delete("message");
    const level = "info";
    if (!modern) await client.setLoggingLevel(level);
    const _meta = modern ? { "io.modelcontextprotocol/logLevel": level } : undefined;
    await call(server, "log", {}, {}, _meta);
    await until("message", () => notifications.has("message"));
    return notifications.get("message").map(({ level, logger, data }) => ({ level, logger, data }));
}

async function listEverything(server) {
    const own = (entries, key, start) => entries.filter((entry) => entry[key].startsWith(`${server}${start}`)).length;
    return {
        tools: own(await tools(), "name", "__"),
        resources: own((await client.listResources()).resources, "uri", "://"),
        templates: own((await client.listResourceTemplates()).resourceTemplates, "uriTemplate", "://"),
        prompts: own((await client.listPrompts()).prompts, "name", "__"),
        ...JSON.parse(await say(server, "seen")),
    };
}

async function growLists(server) {
    const kinds = ["tools", "resources", "prompts"];
    for (const kind of kinds) notifications.delete(`${kind}/list_changed`);
    await call(server, "grow", {});
    const fresh = modern ? { cacheMode: "refresh" } : undefined;
    const lists = {
        tools: async () => (await tools()).some((tool) => tool.name === `${server}__grown`),
        resources: async () =>
            (await client.listResources({}, fresh)).resources.some(({ uri }) => uri === `${server}://notes/grown`),
        prompts: async () => (await client.listPrompts({}, fresh)).prompts.some(({ name }) => name === `${server}__grown`),
    };
    for (const kind of kinds) {
        const method = `${kind}/list_changed`;
        await until(method, async () => notifications.has(method) && (await lists[kind]()));
    }
    return kinds;
}

async function subscribe(server) {
    const uri = `${server}://notes/watched`;
    const subscription = modern ? await client.listen({ resourceSubscriptions: [uri] }) : undefined;
    if (!modern) await client.subscribeResource({ uri });
    notifications.delete("resources/updated");
    await call(server, "touch", {});
    await until("resources/updated", () => notifications.has("resources/updated"));
    const { text } = (await client.readResource({ uri }, modern ? { cacheMode: "refresh" } : undefined)).contents[0];
    if (!modern) await client.unsubscribeResource({ uri });
    await subscription?.close();
    return { updated: notifications.get("resources/updated").map((params) => params.uri), text };
}

// As a task where the list says that this is one, else as a call that takes as long as it takes.
async function work(server) {
    const tool = (await tools()).find((tool) => tool.name === `${server}__work`);
    if (tool === undefined) return "no such tool";
    if (modern) return workModern(tool.name);
    if (!tool.execution?.taskSupport) return { text: await say(server, "work") };
    const seen = {};
    const { CallToolResultSchema } = load("@modelcontextprotocol/sdk/types.js");
    const options = { task: { ttl: 60_000 } };
    const call = { name: tool.name, arguments: {} };
    for await (const message of client.experimental.tasks.callToolStream(call, CallToolResultSchema, options)) {
        if (message.type === "taskCreated") seen.task = message.task.status;
        if (message.type === "result") seen.text = textOf(message.result);
        if (message.type === "error") throw message.error;
    }
    return seen;
}

// The SDK refuses a result that it does not know, so the package for tasks is shown a way around it.
async function workModern(name) {
    const file = join(process.env.PLUGBAY_E2E_DIR, "node_modules/@modelcontextprotocol/ext-tasks/dist/client/index.js");
    const { createTaskSessionFromClient } = await import(pathToFileURL(file));
    const seen = {};
    const session = createTaskSessionFromClient(client, {
        endpointId: "gateway",
        rawDispatch: async (request) => {
            const { error, result } = await dispatch(request);
            if (result?.resultType === "task") seen.task = result.status;
            return error ? { kind: "error", error } : { kind: "result", result };
        },
        v2RequestFraming: {
            protocolVersion: "2026-07-28",
            clientInfo: { name: "matrix", version: "2.0.0" },
            clientCapabilities: capabilities,
        },
    });
    const { outcome } = await (await session.callTool(name, {})).settle();
    await session.close();
    if (!outcome.result) throw new Error(JSON.stringify(outcome));
    return { ...seen, text: textOf(outcome.result) };
}

// A request beside those of the client, over its connection.
function dispatch(request) {
    const receive = transport.onmessage;
    const id = `raw ${(dispatch.count = (dispatch.count ?? 0) + 1)}`;
    return new Promise((resolve, reject) => {
        transport.onmessage = (message, extra) => {
            if (message.id !== id || "method" in message) return receive(message, extra);
            transport.onmessage = receive;
            resolve(message);
        };
        transport.send({ jsonrpc: "2.0", id, ...request }).catch(reject);
    });
}

// How the host answers server requests.
function answer({ method, params }) {
    if (method === "roots/list") return { roots: [{ uri: "file:///matrix", name: "matrix" }] };
    if (method === "sampling/createMessage") {
        const text = `answer to ${[params.messages[0].content].flat()[0].text}`;
        return { role: "assistant", model: "matrix", content: { type: "text", text } };
    }
    if (params.mode === "url") return { action: params.url.startsWith("https://example.com/") ? "accept" : "decline" };
    return { action: "accept", content: { word: `answer to ${params.message}` } };
}

async function tools() {
    // v2 follows the pages itself.
    return (await client.listTools({}, modern ? { cacheMode: "refresh" } : undefined)).tools;
}

function call(server, tool, given, options = {}, _meta) {
    const params = { name: `${server}__${tool}`, arguments: given, ...(_meta && { _meta }) };
    const patient = { timeout: PATIENCE_MS, ...options };
    return modern ? client.callTool(params, patient) : client.callTool(params, undefined, patient);
}

async function say(server, tool, given = {}) {
    return textOf(await call(server, tool, given));
}

function textOf(result) {
    return result.content[0].text;
}

function received(kind, params) {
    notifications.set(kind, [...(notifications.get(kind) ?? []), params]);
    for (const wake of waiting) wake();
}

// Looks again whenever a notification of this kind has arrived.
async function until(kind, holds) {
    for (;;) {
        const before = notifications.get(kind)?.length;
        if (await holds()) return;
        if (notifications.get(kind)?.length !== before) continue;
        await new Promise((resolve) => {
            const wake = () => {
                waiting.delete(wake);
                resolve();
            };
            waiting.add(wake);
        });
    }
}

function soon(promise) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`nothing after ${PATIENCE_MS} ms`)), PATIENCE_MS);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function v1() {
    const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const schemas = load("@modelcontextprotocol/sdk/types.js");
    const client = new Client({ name: "matrix", version: "1.0.0" }, { capabilities });
    for (const kind of ["CreateMessage", "Elicit", "ListRoots"]) {
        client.setRequestHandler(schemas[`${kind}RequestSchema`], answer);
    }
    for (const kind of ["ToolListChanged", "ResourceListChanged", "PromptListChanged", "ResourceUpdated", "LoggingMessage"]) {
        const schema = schemas[`${kind}NotificationSchema`];
        const name = schema.shape.method.value.replace("notifications/", "");
        client.setNotificationHandler(schema, ({ params }) => received(name, params));
    }
    return { client, transport: connect({ StdioClientTransport, StreamableHTTPClientTransport }) };
}

function v2() {
    const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
    const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");
    const versionNegotiation = { mode: { pin: "2026-07-28" } };
    const client = new Client({ name: "matrix", version: "2.0.0" }, { capabilities, versionNegotiation });
    for (const method of ["sampling/createMessage", "elicitation/create", "roots/list"]) {
        client.setRequestHandler(method, answer);
    }
    const kinds = ["tools/list_changed", "resources/list_changed", "prompts/list_changed", "resources/updated", "message"];
    for (const kind of kinds) client.setNotificationHandler(`notifications/${kind}`, ({ params }) => received(kind, params));
    return { client, transport: connect({ StdioClientTransport, StreamableHTTPClientTransport }) };
}

function connect({ StdioClientTransport, StreamableHTTPClientTransport }) {
    if (plan.url) return new StreamableHTTPClientTransport(new URL(plan.url));
    const { command, args, env, cwd } = plan;
    return new StdioClientTransport({ command, args, env, cwd, stderr: "inherit" });
}
