// A server made of the official TypeScript SDK, v1 (legacy) or v2 (modern), that speaks the vocabulary beside it.
//
// Usage: node server.mjs NAME v1|v2     (with PLUGBAY_E2E_DIR naming what setup.sh installed)

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [name, line] = process.argv.slice(2);
const load = createRequire(join(process.env.PLUGBAY_E2E_DIR, "package.json"));
const text = readFileSync(new URL("vocabulary.json", import.meta.url), "utf8").replaceAll("SERVER", name);
const { grown, words, pixel, ...lists } = JSON.parse(text);
// Only a legacy tool says by which calls it works as a task.
if (line === "v2") lists.tools.forEach((tool) => delete tool.execution);

const PAGE = 2;
const WATCHED = `${name}://notes/watched`;
const METHODS = {
    tools: "tools/list",
    resources: "resources/list",
    templates: "resources/templates/list",
    prompts: "prompts/list",
};
const TASKS = "io.modelcontextprotocol/tasks";
const info = { name, version: "1.0.0" };
const capabilities = {
    tools: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    prompts: { listChanged: true },
    completions: {},
    logging: {},
};

const cursors = Object.fromEntries(Object.keys(METHODS).map((list) => [list, []]));
let touched = 0;
const proceeding = gate();
const cancelling = gate();

await (line === "v2" ? serveModern() : serveLegacy());

async function serveLegacy() {
    const { Server } = load("@modelcontextprotocol/sdk/server/index.js");
    const { StdioServerTransport } = load("@modelcontextprotocol/sdk/server/stdio.js");
    const { InMemoryTaskStore } = load("@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js");
    const schemas = load("@modelcontextprotocol/sdk/types.js");
    const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
    const server = new Server(info, { capabilities: { ...capabilities, tasks }, taskStore: new InMemoryTaskStore() });
    // "resources/templates/list" is the method of ListResourceTemplatesRequestSchema, and so on.
    const byMethod = new Map(
        Object.entries(schemas)
            .filter(([key]) => key.endsWith("RequestSchema"))
            .map(([, schema]) => [schema.shape?.method?.value, schema]),
    );
    const on = (method, answer) =>
        server.setRequestHandler(byMethod.get(method), ({ params }, extra) =>
            answer(params, {
                era: "legacy",
                signal: extra.signal,
                progressToken: extra._meta?.progressToken,
                notify: extra.sendNotification,
                log: (level, data) => server.sendLoggingMessage({ level, data, logger: name }),
                ask: (what) => askLegacy(server, what),
                work: () => workLegacy(extra),
            }),
        );
    on("resources/subscribe", () => ({}));
    on("resources/unsubscribe", () => ({}));
    answerAll(on, server);
    await server.connect(new StdioServerTransport());
}

function serveModern() {
    const sdk = load("@modelcontextprotocol/server");
    const { serveStdio } = load("@modelcontextprotocol/server/stdio");
    const { z } = load("zod");
    const build = () => {
        const server = new sdk.Server(info, { capabilities: { ...capabilities, extensions: { [TASKS]: {} } } });
        // The SDK has no tasks of its own, but serves any method.
        server.setRequestHandler("tasks/get", { params: z.looseObject({ taskId: z.string() }) }, ({ taskId }) => ({
            ...task(taskId),
            status: "completed",
            result: { resultType: "complete", ...said(`worked for ${name}`) },
        }));
        const on = (method, answer) =>
            server.setRequestHandler(method, ({ params }, { mcpReq }) =>
                answer(params, {
                    era: "modern",
                    signal: mcpReq.signal,
                    progressToken: mcpReq._meta?.progressToken,
                    notify: mcpReq.notify,
                    log: (level, data) => mcpReq.log(level, data, name),
                    ask: (what) => askModern(sdk, mcpReq, what),
                    work: () => workModern(sdk, mcpReq),
                }),
            );
        answerAll(on, server);
        return server;
    };
    // One that accepted both eras would be met in the older one whenever it starts slowly.
    serveStdio(build, { legacy: "reject" });
}

function answerAll(on, server) {
    for (const [list, method] of Object.entries(METHODS)) on(method, (params) => page(list, params?.cursor));
    on("tools/call", (params, context) => call(params, context, server));
    on("resources/read", ({ uri }) => ({ contents: [read(uri)] }));
    on("prompts/get", ({ name: prompt, arguments: given }) => ({
        messages: [{ role: "user", content: { type: "text", text: `${prompt} ${given?.who ?? "nobody"} from ${name}` } }],
    }));
    on("completion/complete", ({ ref, argument }) => {
        const values = words.filter((word) => word.startsWith(argument.value));
        return { completion: { values: [...values, ref.name ?? ref.uri], total: 9, hasMore: true } };
    });
}

function page(list, cursor) {
    if (cursor !== undefined && !cursors[list].includes(cursor)) cursors[list].push(cursor);
    const start = Number(cursor ?? 0);
    const end = start + PAGE;
    const key = list === "templates" ? "resourceTemplates" : list;
    const more = end < lists[list].length ? { nextCursor: String(end) } : {};
    return { [key]: lists[list].slice(start, end), ...more };
}

function read(uri) {
    if (uri.endsWith("/pixel")) return { uri, mimeType: "image/png", blob: pixel };
    return { uri, mimeType: "text/plain", text: `${uri} touched ${touched} times` };
}

async function call({ name: tool, arguments: given }, context, server) {
    switch (tool) {
        case "echo":
            return {
                content: [{ type: "text", text: given.message }, { type: "image", data: pixel, mimeType: "image/png" }],
                structuredContent: { said: given.message },
                _meta: { "example.com/from": name },
            };
        case "fail":
            return { ...said("as it always does"), isError: true };
        case "seen":
            return said(JSON.stringify({ era: context.era, cursors }));
        case "ask":
            return context.ask(given.what);
        case "count":
            for (const progress of [1, 2, 3]) await step(context, progress, 3);
            await proceeding.opened;
            return said("counted");
        case "proceed":
            proceeding.open();
            return said("go on");
        case "wait":
            await step(context, 1, 2);
            await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
            cancelling.open();
            return said("never read");
        case "cancelled":
            await cancelling.opened;
            return said("a wait was cancelled");
        case "log":
            await context.log("debug", `a detail of ${name}`);
            await context.log("warning", { from: name, n: 1.5 });
            return said("logged");
        case "grow":
            for (const [list, entry] of Object.entries(grown)) lists[list].push(entry);
            await server.sendToolListChanged();
            await server.sendResourceListChanged();
            await server.sendPromptListChanged();
            return said("grown");
        case "work":
            return context.work();
        case "touch":
            touched += 1;
            await server.sendResourceUpdated({ uri: WATCHED });
            return said("touched");
        default:
            throw new Error(`no tool ${tool}`);
    }
}

function step({ progressToken, notify }, progress, total) {
    const params = { progressToken, progress, total, message: `${progress} of ${total}` };
    return notify({ method: "notifications/progress", params });
}

// The params of a server request. The host repeats words of them in its answer, so that no answer can be another's.
function requestParams(what) {
    const message = `${what} of ${name}`;
    return {
        sampling: { messages: [{ role: "user", content: { type: "text", text: message } }], maxTokens: 7 },
        form: { message, requestedSchema: { type: "object", properties: { word: { type: "string" } }, required: ["word"] } },
        url: { message, url: `https://example.com/${name}` },
    }[what];
}

async function askLegacy(server, what) {
    const asks = {
        sampling: async () => common(await server.createMessage(requestParams(what))),
        form: async () => common(await server.elicitInput(requestParams(what))),
        url: async () => common(await server.elicitInput({ mode: "url", elicitationId: `of ${name}`, ...requestParams(what) })),
        roots: async () => common(await server.listRoots()),
    };
    return asks[what]();
}

function askModern(sdk, mcpReq, what) {
    const answer = mcpReq.inputResponses?.[what];
    if (answer !== undefined) return common(answer);
    const asks = {
        sampling: () => sdk.inputRequired.createMessage(requestParams(what)),
        form: () => sdk.inputRequired.elicit(requestParams(what)),
        url: () => sdk.inputRequired.elicitUrl(requestParams(what)),
        roots: () => sdk.inputRequired.listRoots(),
    };
    return sdk.inputRequired({ inputRequests: { [what]: asks[what]() } });
}

// The work is done as soon as the task is known.
async function workLegacy({ taskStore }) {
    const task = await taskStore.createTask({ ttl: 60_000, pollInterval: 50 });
    setImmediate(() => taskStore.storeTaskResult(task.taskId, "completed", said(`worked for ${name}`)));
    return { task };
}

function workModern(sdk, mcpReq) {
    const can = mcpReq.envelope?.[sdk.CLIENT_CAPABILITIES_META_KEY]?.extensions;
    if (!can?.[TASKS]) {
        const requiredCapabilities = { extensions: { [TASKS]: {} } };
        throw new sdk.ProtocolError(-32021, "this tool works as a task", { requiredCapabilities });
    }
    return { resultType: "task", ...task(`of ${name}`), content: [] };
}

function task(taskId) {
    const now = new Date().toISOString();
    return { taskId, status: "working", createdAt: now, lastUpdatedAt: now, ttlMs: 60_000, pollIntervalMs: 50 };
}

// The members of an answer that both eras have.
function common({ role, model, content, action, roots }) {
    return said(JSON.stringify({ role, model, content, action, roots }));
}

function said(text) {
    return { content: [{ type: "text", text }] };
}

// A promise and what fulfils it.
function gate() {
    let open;
    const opened = new Promise((resolve) => (open = resolve));
    return { open, opened };
}
