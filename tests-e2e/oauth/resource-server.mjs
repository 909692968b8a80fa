// An MCP server behind a login, made of the official TypeScript SDK v2: its bearer authentication, its scope challenges,
// its protected resource metadata, and both protocol eras at one address.
//
// Usage: node resource-server.mjs --issuer URL [--port N] [--era legacy|modern|both]
//
// Prints one line: {"url": "http://127.0.0.1:PORT/mcp"}. Every request needs an access token with the scope `notes:read`
// for this address; `write_note` also needs `notes:write`. Tokens are checked with the keys of the issuer.
//
// For the tests it also answers GET /test/seen: each request with its status and a hash of its Authorization header; and
// POST /test/refuse: the tokens seen until now are refused from now on.

import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

import { load, loadModule } from "./packages.mjs";

const sdk = load("@modelcontextprotocol/server");
const { toNodeHandler } = load("@modelcontextprotocol/node");
const { z } = load("zod");
const { createRemoteJWKSet, jwtVerify } = await loadModule("jose");

const { values: options } = parseArgs({
    options: {
        issuer: { type: "string" },
        port: { type: "string", default: "0" },
        era: { type: "string", default: "both" },
    },
});
const SCOPES = ["notes:read", "notes:write"];

const seen = [];
const refused = new Set();
const notes = [];
const sessions = new Map();
const keys = createRemoteJWKSet(new URL("/jwks", options.issuer));
const modern = sdk.createMcpHandler(build, { legacy: "reject" });

let resource, metadata, metadataUrl, authenticate;
const listener = createServer(toNodeHandler({ fetch: answer }));
listener.listen(Number(options.port), "127.0.0.1", () => {
    resource = new URL(`http://127.0.0.1:${listener.address().port}/mcp`);
    metadataUrl = sdk.getOAuthProtectedResourceMetadataUrl(resource);
    metadata = sdk.buildOAuthProtectedResourceMetadata({
        oauthMetadata: { issuer: options.issuer },
        resourceServerUrl: resource,
        scopesSupported: SCOPES,
        resourceName: "Notes",
        dangerouslyAllowInsecureIssuerUrl: true,
    });
    const verifier = { verifyAccessToken };
    authenticate = sdk.requireBearerAuth({ verifier, requiredScopes: ["notes:read"], resourceMetadataUrl: metadataUrl, expectedResource: resource });
    console.log(JSON.stringify({ url: resource.href }));
});

async function answer(request) {
    const { pathname } = new URL(request.url);
    if (pathname === new URL(metadataUrl).pathname) return Response.json(metadata);
    if (pathname === "/test/seen") return Response.json({ requests: seen, notes });
    if (pathname === "/test/refuse") return Response.json(refuseAll());
    if (pathname !== "/mcp") return new Response(null, { status: 404 });
    const body = await read(request);
    const note = { at: Date.now(), http: request.method, method: body?.method, tool: body?.params?.name, ...authorization(request) };
    seen.push(note);
    const response = await serve(request, body);
    note.status = response.status;
    return response;
}

async function serve(request, body) {
    const authInfo = await authenticate(request);
    if (authInfo instanceof Response) return authInfo;
    const given = { authInfo, parsedBody: body };
    if (options.era === "modern") return modern.fetch(request, given);
    const legacy = options.era === "legacy" || (await sdk.isLegacyRequest(request, body));
    return legacy ? serveLegacy(request, given) : modern.fetch(request, given);
}

async function serveLegacy(request, given) {
    const id = request.headers.get("mcp-session-id");
    if (id !== null && !sessions.has(id)) return Response.json(failure(-32001, "Session not found"), { status: 404 });
    const transport = sessions.get(id) ?? (await open());
    return transport.handleRequest(request, given);
}

async function open() {
    const transport = new sdk.WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
        onsessionclosed: (id) => sessions.delete(id),
    });
    await build().connect(transport);
    return transport;
}

function build() {
    const server = new sdk.McpServer({ name: "notes", version: "1.0.0" });
    server.registerTool("whoami", { description: "Tells who is logged in, and what the token allows" }, ({ http }) => {
        const { extra, scopes } = http.authInfo;
        return said(JSON.stringify({ sub: extra.sub, scopes: [...scopes].sort() }));
    });
    server.registerTool(
        "echo",
        { description: "Says it back", inputSchema: z.object({ message: z.string() }) },
        ({ message }) => said(message),
    );
    server.registerTool(
        "write_note",
        {
            description: "Writes a note",
            inputSchema: z.object({ text: z.string() }),
            scopeChallenge: sdk.requireScopes("notes:write"),
        },
        ({ text }) => {
            notes.push(text);
            return said(`wrote ${text}`);
        },
    );
    return server;
}

async function verifyAccessToken(token) {
    if (refused.has(hash(token))) throw invalid("it was revoked");
    let claims;
    try {
        claims = (await jwtVerify(token, keys, { issuer: options.issuer, typ: "at+jwt" })).payload;
    } catch (error) {
        throw invalid(error.message);
    }
    const { sub, client_id: clientId, scope = "", exp, aud } = claims;
    return { token, clientId, scopes: scope.split(" ").filter(Boolean), expiresAt: exp, resource: new URL(aud), extra: { sub } };
}

function invalid(why) {
    return new sdk.OAuthError(sdk.OAuthErrorCode.InvalidToken, why);
}

function authorization(request) {
    const header = request.headers.get("authorization");
    return { authorization: header ? hash(header.replace(/^Bearer /i, "")) : null };
}

function refuseAll() {
    for (const { authorization } of seen) if (authorization) refused.add(authorization);
    return { refused: refused.size };
}

async function read(request) {
    if (request.method !== "POST") return undefined;
    try {
        return await request.clone().json();
    } catch {
        return undefined;
    }
}

function said(text) {
    return { content: [{ type: "text", text }] };
}

function failure(code, message) {
    return { jsonrpc: "2.0", id: null, error: { code, message } };
}

function hash(text) {
    return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
