// A server made of the official TypeScript SDK v2 that works by tasks: 2026-07-28 over HTTP, and nothing else.
//
// Usage: PORT=0 node task-server.mjs     (with PLUGBAY_E2E_DIR naming what setup.sh installed)
//
// Its tool `research` insists on a client that takes tasks. It asks for a colour on its way, and then answers.
// The SDK has no tasks of its own, but lets a server answer by any result and serve any method.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const load = createRequire(join(process.env.PLUGBAY_E2E_DIR, "package.json"));
const { McpServer, ProtocolError, createMcpHandler } = load("@modelcontextprotocol/server");
const { toNodeHandler } = load("@modelcontextprotocol/node");
const { z } = load("zod");

const EXTENSION = "io.modelcontextprotocol/tasks";
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

// The SDK makes a server for each request, so what they share is out here.
const tasks = new Map();

const handler = createMcpHandler(build, { legacy: "reject" });
const listener = createServer(toNodeHandler(handler));
listener.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
    console.error(`listening on http://127.0.0.1:${listener.address().port}/mcp`);
});

function build() {
    const server = new McpServer(
        { name: "tasks", version: "1.0.0" },
        { capabilities: { tools: {}, extensions: { [EXTENSION]: {} } } },
    );
    server.registerTool("research", { description: "Takes its time", inputSchema: z.object({ topic: z.string() }) }, () => {});
    // Its own handler would make a result of the error that insists on tasks.
    server.server.setRequestHandler("tools/call", ({ params }, context) => begin(params.arguments, context));
    const about = z.looseObject({ taskId: z.string() });
    const serve = (method, does) => server.server.setRequestHandler(method, { params: about }, (params, context) => {
        const task = tasks.get(params.taskId);
        if (!task) throw new ProtocolError(-32602, `no such task: ${params.taskId}`);
        return does(task, context.mcpReq.inputResponses);
    });
    serve("tasks/get", (task) => ({ ...task }));
    serve("tasks/update", (task, answers) => {
        const { action, content } = answers.colour;
        const text = `${task.topic}, ${action === "accept" ? content.colour : "colourless"}`;
        delete task.inputRequests;
        Object.assign(task, { status: "completed", result: { resultType: "complete", content: [{ type: "text", text }] } });
        return {};
    });
    serve("tasks/cancel", (task) => {
        task.status = "cancelled";
        return {};
    });
    return server;
}

// Its ids are as plain as can be: a gateway must keep those of several servers apart.
function begin({ topic }, context) {
    const declared = context.mcpReq.envelope?.[CAPABILITIES] ?? {};
    if (!declared.extensions?.[EXTENSION]) {
        const requiredCapabilities = { extensions: { [EXTENSION]: {} } };
        throw new ProtocolError(-32021, "this tool works by tasks", { requiredCapabilities });
    }
    const now = new Date().toISOString();
    const taskId = String(tasks.size + 1);
    const times = { createdAt: now, lastUpdatedAt: now, ttlMs: 60_000, pollIntervalMs: 50 };
    const requestedSchema = { type: "object", properties: { colour: { type: "string" } }, required: ["colour"] };
    const params = { mode: "form", message: "Which colour?", requestedSchema };
    const inputRequests = { colour: { method: "elicitation/create", params } };
    tasks.set(taskId, { taskId, topic, status: "input_required", ...times, inputRequests });
    return { resultType: "task", taskId, status: "working", ...times, content: [] };
}
