// A real authorization server: oidc-provider on a port of loopback, with its own pages for login and consent.
//
// Usage: node authorization-server.mjs [--port N] [--store FILE] [--lifetime SECONDS] [--client JSON]...
//            [--no-registration] [--metadata-documents] [--no-revocation] [--list-scopes]
//
// --lifetime: of access tokens. --client: a client that is registered already, as oidc-provider's `clients` has them.
// --metadata-documents: accepts client id metadata documents (NODE_EXTRA_CA_CERTS names the certificate of their server).
// --list-scopes: the scopes of the MCP server are also its own: it lists them, and clients may register for them. Without
// it they belong to the resource alone.
//
// Prints one line: {"issuer": "http://127.0.0.1:PORT"}. PKCE is required, refresh tokens are for single use, and one that
// is used twice ends its grant. Refresh tokens are given as oidc-provider does it: for `offline_access`, which counts only
// with `prompt=consent`. Access tokens are JWTs for the `resource` of the request.
//
// For the tests it also answers, see `administration`:
// GET /test/metrics, GET /test/secrets, POST /test/behaviour {"delayMs", "status", "paths"}, POST /test/revoke.

import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

import { loadModule } from "./packages.mjs";
import { Store } from "./store.mjs";

const { values: options } = parseArgs({
    options: {
        port: { type: "string", default: "0" },
        store: { type: "string" },
        lifetime: { type: "string", default: "3600" },
        client: { type: "string", multiple: true, default: [] },
        "no-registration": { type: "boolean", default: false },
        "metadata-documents": { type: "boolean", default: false },
        "no-revocation": { type: "boolean", default: false },
        "list-scopes": { type: "boolean", default: false },
    },
});
const SCOPES = "notes:read notes:write";

// stdout has one line; the notices of oidc-provider go elsewhere.
console.info = console.error;
const { Provider, errors } = await loadModule("oidc-provider");
const { exportJWK, generateKeyPair } = await loadModule("jose");

const metrics = {
    authorizations: 0,
    denials: 0,
    tokenRequests: 0,
    codeExchanges: 0,
    refreshes: 0,
    registrations: 0,
    revocations: 0,
    reuseDetections: 0,
    metadataDocuments: 0,
    errors: {},
    // Requests that were answered with the status that a test has asked for.
    refused: 0,
    // Refresh tokens in the order in which they were sent, as hashes.
    refreshTokens: [],
};
const secrets = new Set();
let behaviour = { delayMs: 0, status: 0, paths: ["/token"] };

for (const client of options.client) keep(JSON.parse(client).client_secret);
const store = new Store(options.store);
const keys = await store.once("keys", makeKeys);
const listener = createServer((request, response) => answer(request, response));
let issuer, serve;
listener.listen(Number(options.port), "127.0.0.1", () => {
    issuer = `http://127.0.0.1:${listener.address().port}`;
    serve = provider().callback();
    console.log(JSON.stringify({ issuer }));
});

async function answer(request, response) {
    const path = new URL(request.url, issuer).pathname;
    if (path.startsWith("/test/")) return administration(request, response, path);
    if (behaviour.paths.includes(path)) {
        const { delayMs, status } = behaviour;
        if (delayMs > 0) await new Promise((done) => setTimeout(done, delayMs));
        if (status > 0) {
            metrics.refused += 1;
            return reply(response, status, { error: "temporarily_unavailable" });
        }
    }
    response.on("finish", () => {
        if (path === "/token/revocation" && response.statusCode === 200) metrics.revocations += 1;
    });
    serve(request, response);
}

async function administration(request, response, path) {
    if (path === "/test/metrics") return reply(response, 200, metrics);
    if (path === "/test/secrets") return reply(response, 200, [...secrets]);
    if (path === "/test/revoke") return reply(response, 200, store.revokeAll() ?? {});
    if (path !== "/test/behaviour") return reply(response, 404, {});
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    behaviour = { delayMs: 0, status: 0, paths: ["/token"], ...JSON.parse(Buffer.concat(chunks).toString()) };
    reply(response, 200, behaviour);
}

function provider() {
    const made = new Provider(issuer, {
        adapter: (model) => store.adapter(model),
        jwks: { keys: keys.jwks },
        cookies: { keys: keys.cookies },
        clients: options.client.map((client) => JSON.parse(client)),
        scopes: ["openid", "offline_access", ...(options["list-scopes"] ? SCOPES.split(" ") : [])],
        pkce: { required: () => true },
        rotateRefreshToken: true,
        ttl: { AccessToken: Number(options.lifetime), RefreshToken: 86_400, Session: 86_400, Grant: 86_400, Interaction: 600, IdToken: 600 },
        clientAuthMethods: ["none", "client_secret_basic", "client_secret_post"],
        fetch: fetchDocument,
        features: {
            devInteractions: { enabled: true },
            registration: { enabled: !options["no-registration"] },
            revocation: { enabled: !options["no-revocation"] },
            clientIdMetadataDocument: { enabled: options["metadata-documents"], ack: "draft-02" },
            resourceIndicators: { enabled: true, getResourceServerInfo: resourceServer },
        },
    });
    count(made);
    return made;
}

function resourceServer(_, resource) {
    const { hostname, pathname, search } = new URL(resource);
    if (hostname !== "127.0.0.1" || pathname !== "/mcp" || search) throw new errors.InvalidTarget();
    return {
        scope: SCOPES,
        audience: resource,
        accessTokenTTL: Number(options.lifetime),
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "RS256" } },
    };
}

// oidc-provider refuses loopback addresses in its own dispatcher. These documents are nowhere else.
function fetchDocument(url, { dispatcher, ...options }) {
    metrics.metadataDocuments += 1;
    return fetch(url, options);
}

function count(provider) {
    provider.on("authorization.success", (_, out) => {
        metrics.authorizations += 1;
        keep(out?.code);
    });
    provider.on("authorization.error", (_, { error }) => {
        if (error === "access_denied") metrics.denials += 1;
        else countError(error);
    });
    provider.on("grant.success", ({ oidc: { params }, body }) => {
        countToken(params);
        if (params.grant_type === "authorization_code") metrics.codeExchanges += 1;
        if (params.grant_type === "refresh_token") metrics.refreshes += 1;
        keep(body.access_token, body.refresh_token, body.id_token);
    });
    provider.on("grant.error", ({ oidc: { params } }, { error, error_detail: detail }) => {
        countToken(params);
        countError(error);
        if (detail === "refresh token already used") metrics.reuseDetections += 1;
    });
    provider.on("registration_create.success", ({ body }) => {
        metrics.registrations += 1;
        keep(body.client_secret, body.registration_access_token);
    });
    provider.on("registration_create.error", (_, { error }) => countError(error));
    provider.on("server_error", (_, error) => console.error(error));
}

function countToken(params) {
    metrics.tokenRequests += 1;
    keep(params?.code_verifier);
    if (params?.refresh_token) metrics.refreshTokens.push(hash(params.refresh_token));
}

function countError(error) {
    metrics.errors[error] = (metrics.errors[error] ?? 0) + 1;
}

// No other program may ever write these down, except where it keeps its tokens.
function keep(...values) {
    for (const value of values) if (value) secrets.add(value);
}

async function makeKeys() {
    const { privateKey } = await generateKeyPair("RS256", { extractable: true });
    const jwk = await exportJWK(privateKey);
    return { jwks: [{ ...jwk, use: "sig", alg: "RS256", kid: "first" }], cookies: [hash(JSON.stringify(jwk))] };
}

function hash(text) {
    return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function reply(response, status, body) {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
}
