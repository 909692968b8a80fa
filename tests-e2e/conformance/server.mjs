// The server that the official conformance suite asks for, made of the official TypeScript SDK v2: legacy
// with sessions and 2026-07-28 at one address. The suite's own one is not in its package.
//
// Usage: PORT=0 node server.mjs [--stdio]     (with PLUGBAY_E2E_DIR naming what setup.sh installed)
//
// Says `listening on http://127.0.0.1:PORT/mcp` on stderr when it does, or speaks over stdio.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { node, sdk, serveStdio } from "./sdk.mjs";
import { addPrompts } from "./prompts.mjs";
import { addResources } from "./resources.mjs";
import { addTools } from "./tools.mjs";

const codec = sdk.createRequestStateCodec({ key: randomUUID() + randomUUID() });
// The SDK makes a server for each modern request, so what changes is kept out here.
const shared = { codec, notify: undefined, extraTools: 0, extraPrompts: 0 };
const sessions = new Map();

if (process.argv.includes("--stdio")) serveStdio(build);
else listen();

function listen() {
    const modern = sdk.createMcpHandler(build, { legacy: "reject" });
    shared.notify = modern.notify;
    const serveModern = node.toNodeHandler(modern);
    const fromHere = [node.localhostHostValidation(), node.localhostOriginValidation()];
    const listener = createServer(async (request, response) => {
        if (!fromHere.every((allows) => allows(request, response))) return;
        const body = await read(request);
        const legacy = await sdk.isLegacyRequest(await node.toWebRequest(request, body), body);
        await (legacy ? serveLegacy(request, response, body) : serveModern(request, response, body));
    });
    listener.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
        console.error(`listening on http://127.0.0.1:${listener.address().port}/mcp`);
    });
}

function build() {
    const server = new sdk.McpServer(
        { name: "conformance", version: "1.0.0" },
        {
            capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } },
            requestState: { verify: codec.verify },
        },
    );
    addTools(server, shared);
    addPrompts(server, shared);
    addResources(server);
    return server;
}

async function serveLegacy(request, response, body) {
    const id = request.headers["mcp-session-id"];
    if (id !== undefined && !sessions.has(id)) return refuse(response, 404, -32001, "Session not found");
    const transport = sessions.get(id) ?? (await open());
    await transport.handleRequest(request, response, body);
}

// A transport that refuses to be initialised is never stored, and so forgotten.
async function open() {
    const transport = new node.NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
        onsessionclosed: (id) => sessions.delete(id),
    });
    await build().connect(transport);
    return transport;
}

// `undefined` for what is no JSON: the SDK then says so itself.
async function read(request) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    try {
        return JSON.parse(Buffer.concat(chunks).toString());
    } catch {
        return undefined;
    }
}

function refuse(response, status, code, message) {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message } }));
}
