// Scenarios: how a user logs in, with each kind of client, and how a login fails.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { createServer as listen } from "node:net";
import { join } from "node:path";

import { visit } from "./user.mjs";
import { PATIENCE_MS, later } from "./world.mjs";

const REDIRECT = /^http:\/\/127\.0\.0\.1:\d+\/callback\?/;
// RFC 8252: the port of a native client's redirect URI is not compared.
const NATIVE = { redirect_uris: ["http://127.0.0.1/callback"], application_type: "native", grant_types: ["authorization_code", "refresh_token"], response_types: ["code"] };

export const logins = {
    "login in the browser, dynamic registration, modern server": (world) => logIn(world, { era: "modern" }, "logged-in"),
    "login in the browser, dynamic registration, legacy server": (world) => logIn(world, { era: "legacy" }),
    "login with --no-browser, pasted redirect": pasteRedirect,
    "login with --no-browser, the callback arrives by itself": withoutPaste,
    "login with --no-browser, a redirect of another login": pasteForeignRedirects,
    "login with --no-browser, a redirect of another issuer": pasteOfAnotherIssuer,
    "login as a registered public client": (world) => logInAs(world, { client_id: "public", token_endpoint_auth_method: "none" }),
    "login as a registered client with a fixed port": fixedPort,
    "login as a registered confidential client": (world) => logInAs(world, { client_id: "confidential", client_secret: "hunter2-but-long-enough-for-a-canary" }),
    "login without any way to be a client": noClient,
    "login with a client id metadata document": metadataDocument,
    "login that the user denies": deny,
    "login whose code cannot be exchanged": noToken,
};

async function logIn(world, options, shot) {
    await world.open(options);
    await world.needsLogin();
    const { code, stdout, stderr, page } = await world.login({ shot });
    assert.equal(code, 0, `${stdout}${stderr}${JSON.stringify(page)}`);
    seenPage(page, 200);
    assert.doesNotMatch(page.text, /error|failed|denied/i);
    assert.equal(page.arguments.length, 1, `the browser must get the URL alone: ${page.arguments}`);
    await used(world);
    assert.equal((await world.issuer.metrics()).registrations, 1);
}

// A call works, with what the server asked for and no more, and costs no further token.
async function used(world) {
    assert.deepEqual(await world.whoami(), { sub: "ada", scopes: ["notes:read"] });
    await world.whoami();
    const { code, stdout } = await world.run(["list", "--json"]);
    assert.equal(code, 0, stdout);
    assert.match(stdout, /"state": "ready",\s+"tools": 3/);
    const { codeExchanges, refreshes, tokenRequests } = await world.issuer.metrics();
    assert.deepEqual({ codeExchanges, refreshes, tokenRequests }, { codeExchanges: 1, refreshes: 0, tokenRequests: 1 });
    assert.equal((await world.status()).state, "logged in");
}

async function pasteRedirect(world) {
    await world.open();
    const user = world.user();
    const { login, url } = await loginWithoutBrowser(world, user.env);
    const { url: redirect } = await visit(url, { unreachable: true });
    login.write(`${redirect}\n`);
    const { code, stdout, stderr } = await login.end(PATIENCE_MS);
    assert.equal(code, 0, `${stdout}${stderr}`);
    assert.equal(user.read(), undefined, "--no-browser must open no browser");
    await used(world);
}

async function withoutPaste(world) {
    await world.open();
    const { login, url } = await loginWithoutBrowser(world);
    seenPage(await visit(url), 200);
    const { code, stdout, stderr } = await login.end(PATIENCE_MS);
    assert.equal(code, 0, `${stdout}${stderr}`);
    await used(world);
}

// Answers to a login that this one is not: their code is never exchanged, and they do not disturb the login.
async function pasteForeignRedirects(world) {
    await world.open();
    const { login, url } = await loginWithoutBrowser(world);
    const { url: redirect } = await visit(url, { unreachable: true });
    login.write(`${changed(redirect, "state", "of-somebody-else")}\n`);
    await Promise.race([login.ended, later(3_000)]);
    assert.equal(login.how, undefined, `another state must not end the login: ${login.stderr}`);
    assert.equal((await world.issuer.metrics()).tokenRequests, 0);
    login.write(`${redirect}\n`);
    const { code, stderr } = await login.end(PATIENCE_MS);
    assert.equal(code, 0, stderr);
    await used(world);
}

// Another authorization server has answered: its code must not be sent to ours.
async function pasteOfAnotherIssuer(world) {
    await world.open();
    const { login, url } = await loginWithoutBrowser(world);
    const { url: redirect } = await visit(url, { unreachable: true });
    login.write(`${changed(redirect, "iss", "http://127.0.0.1:1")}\n`);
    const { code, stderr } = await login.end(PATIENCE_MS);
    assert.equal(code, 1, stderr);
    assert.equal((await world.issuer.metrics()).tokenRequests, 0);
    await world.needsLogin();
}

function changed(url, name, value) {
    const changed = new URL(url);
    changed.searchParams.set(name, value);
    return changed;
}

async function loginWithoutBrowser(world, env) {
    const login = world.start(["auth", "login", "notes", "--no-browser"], env);
    const [url] = await login.until(/^http:\/\/\S+$/m, PATIENCE_MS);
    assert.ok(url.startsWith(world.issuer.issuer), url);
    return { login, url };
}

async function logInAs(world, client) {
    const issuer = ["--no-registration", "--client", JSON.stringify({ ...NATIVE, ...client })];
    const { client_id: clientId, client_secret: clientSecret } = client;
    await world.open({ issuer, oauth: { clientId, ...(clientSecret && { clientSecret }) } });
    await world.loggedIn();
    await used(world);
}

// As authorization servers want it that compare the whole redirect URI.
async function fixedPort(world) {
    const callbackPort = await freePort();
    const client = { client_id: "fixed", token_endpoint_auth_method: "none", redirect_uris: [`http://localhost:${callbackPort}/callback`], application_type: "web" };
    const issuer = ["--no-registration", "--client", JSON.stringify({ ...NATIVE, ...client })];
    await world.open({ issuer, oauth: { clientId: "fixed", callbackPort } });
    await world.loggedIn();
    await used(world);
}

function freePort() {
    const listener = listen();
    return new Promise((done) => listener.listen(0, "127.0.0.1", () => done(listener.address().port))).finally(() => listener.close());
}

async function noClient(world) {
    await world.open({ issuer: ["--no-registration"] });
    const user = world.user();
    const { code, stdout, stderr } = await world.run(["auth", "login", "notes"], { env: user.env });
    assert.equal(code, 1, `${stdout}${stderr}`);
    assert.match(stderr, /clientId/, "it must say what to configure");
    assert.equal(user.read(), undefined, "there is nothing to open in a browser");
}

async function metadataDocument(world, { folder }) {
    const certificate = makeCertificate(folder);
    const document = {};
    const listener = createServer(certificate, (_, response) => {
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document));
    });
    await new Promise((done) => listener.listen(0, "127.0.0.1", done));
    try {
        const clientMetadataUrl = `https://127.0.0.1:${listener.address().port}/plugbay.json`;
        Object.assign(document, NATIVE, { client_id: clientMetadataUrl, client_name: "plugbay", token_endpoint_auth_method: "none" });
        const issuerEnv = { NODE_EXTRA_CA_CERTS: certificate.file };
        await world.open({ issuer: ["--metadata-documents"], issuerEnv, oauth: { clientMetadataUrl } });
        await world.loggedIn();
        await used(world);
        const { registrations, metadataDocuments } = await world.issuer.metrics();
        assert.deepEqual({ registrations, read: metadataDocuments > 0 }, { registrations: 0, read: true });
    } finally {
        listener.close();
    }
}

// For 127.0.0.1, and for today.
function makeCertificate(folder) {
    const [file, key] = ["certificate.pem", "key.pem"].map((name) => join(folder, name));
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
    execFileSync("openssl", ["req", "-x509", "-days", "2", ...kind, ...names, "-keyout", key, "-out", file], { stdio: "ignore" });
    return { file, key: readFileSync(key), cert: readFileSync(file) };
}

async function deny(world) {
    await world.open();
    const { code, stdout, stderr, page } = await world.login({ consent: false, shot: "denied" });
    assert.equal(code, 1, `${stdout}${stderr}`);
    assert.match(stderr, /denied|refused|rejected|cancel/i);
    seenPage(page);
    assert.match(page.text, /denied|refused|rejected|cancel|not logged in/i);
    const { denials, tokenRequests } = await world.issuer.metrics();
    assert.deepEqual({ denials, tokenRequests }, { denials: 1, tokenRequests: 0 });
    await world.needsLogin();
    await world.loggedIn();
    await world.whoami();
}

// The page waits for the end of the login: it must not call a success what is none.
async function noToken(world) {
    await world.open();
    await world.issuer.behave({ status: 503 });
    const { code, stdout, stderr, page } = await world.login({ shot: "no-token" });
    assert.equal(code, 1, `${stdout}${stderr}`);
    seenPage(page);
    assert.match(page.text, /not logged in/i);
    await world.issuer.behave();
    await world.needsLogin();
}

// The page at the redirect URI: shown to the end, and of nothing but itself.
function seenPage({ failed, url, status, text, elsewhere }, wanted = status) {
    assert.equal(failed, undefined);
    assert.match(url, REDIRECT);
    assert.equal(status, wanted);
    assert.ok(text.length > 0, "the page must say something");
    assert.deepEqual(elsewhere, [], "the page must load nothing from elsewhere");
}
