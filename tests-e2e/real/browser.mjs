// Two hosts with one browser server, and the pages that reach the wrong one. Usage: see ../browser.sh

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { Client } from "./client.mjs";
import { HttpClient, serveHttp } from "./http-client.mjs";
import { hasDaemon, homeOnly, plugbay, serveShared, stopDaemon } from "./plugbay.mjs";
import { configuration, servers, surroundings } from "./servers.mjs";
import { table } from "./table.mjs";

const HOSTS = ["alpha", "beta"];

const { values: options } = parseArgs({
    options: {
        plugbay: { type: "string", default: plugbay() },
        over: { type: "string" },
        way: { type: "string", multiple: true, default: ["direct", "shared", "session"] },
        pages: { type: "string", default: "48" },
    },
});
const program = resolve(options.plugbay);
const scratch = mkdtempSync(join(tmpdir(), "plugbay-browser-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
const browser = browserServer();
const site = await serveSite();

const counts = [];
for (const way of options.way) counts.push([way, await browse(way)]);
const head = ["", "pages", "leaked to the other host", "lost", "cookies of the other host"];
console.log(table(head, counts.map(([way, { pages, leaked, lost, cookies }]) => [way, pages, leaked, lost, cookies])));
const wrong = counts.filter(([way, { leaked, lost, cookies }]) => way !== "shared" && leaked + lost + cookies > 0);
wrong.forEach(([way]) => console.log(`FAILED: ${way}: pages must neither leak nor get lost`));
process.exit(wrong.length === 0 ? 0 : 1);

// Both hosts visit their share of the pages at the same time.
async function browse(way) {
    const home = mkdtempSync(join(scratch, `${way}-`));
    const { clients, prefix, end } = await (way === "direct" ? direct(home) : throughPlugbay(way, home));
    const count = { pages: 0, leaked: 0, lost: 0, cookies: 0 };
    const run = `${way}-${Date.now()}`;
    site.wrongCookie = () => (count.cookies += 1);
    try {
        await Promise.all(clients.map((client, index) => visit(client, prefix, HOSTS[index], run, count)));
    } finally {
        await Promise.all(clients.map((client) => client.close()));
        await end();
    }
    return count;
}

async function visit(client, prefix, host, run, count) {
    await client.initialize({ name: host });
    for (let page = 0; page < Number(options.pages) / HOSTS.length; page += 1) {
        await call(client, `${prefix}browser_navigate`, { url: `${site.url}/${run}/${host}/${page}` });
        const seen = await call(client, `${prefix}browser_snapshot`, {});
        const other = HOSTS.find((each) => each !== host);
        count.pages += 1;
        if (seen.includes(`canary-${other}-`)) count.leaked += 1;
        if (!seen.includes(`canary-${host}-${page}-end`)) count.lost += 1;
    }
}

// A shared browser may fail a call when the other host navigates meanwhile; that page counts as lost, not as a crash.
async function call(client, name, args) {
    const { result } = await client.request("tools/call", { name, arguments: args });
    return JSON.stringify(result);
}

function direct(home) {
    const { command, args, env } = browser;
    const clients = HOSTS.map(() => new Client(command, args, { cwd: home, env: { ...surroundings(home), ...env } }));
    return { clients, prefix: "", end: () => {} };
}

async function throughPlugbay(scope, home) {
    const file = join(home, "browser.json");
    writeFileSync(file, JSON.stringify(configuration([browser], { mode: "all" }, () => ({ scope })), null, 2));
    const prefix = `${browser.name}__`;
    if ((options.over ?? (hasDaemon(program) ? "daemon" : "http")) === "http") {
        const { url, end } = await serveHttp(program, file, { cwd: home, env: homeOnly(home) });
        return { clients: HOSTS.map(() => new HttpClient(url)), prefix, end };
    }
    const clients = HOSTS.map(() => serveShared(program, file, { cwd: home, home }));
    return { clients, prefix, end: () => stopDaemon(program, home) };
}

function browserServer() {
    const server = servers(scratch).find(({ name }) => name === "playwright");
    const args = ["--headless", "--no-sandbox", "--isolated", "--executable-path", process.env.CHROMIUM];
    return { ...server, args };
}

// Pages with a word of their host, which also set a cookie: a browser that two hosts share sends it for both.
function serveSite() {
    const server = createServer((request, response) => {
        const [, run, host, page] = request.url.split("/");
        if (page === undefined) return response.writeHead(404).end();
        const cookies = request.headers.cookie ?? "";
        if (HOSTS.some((other) => other !== host && cookies.includes(`${run}-${other}`))) site.wrongCookie();
        response.writeHead(200, { "content-type": "text/html", "set-cookie": `${host}=${run}-${host}; Path=/` });
        response.end(`<title>${host}</title><h1>canary-${host}-${page}-end</h1>`);
    });
    server.unref();
    return new Promise((done) => server.listen(0, "127.0.0.1", () => done({ url: `http://127.0.0.1:${server.address().port}`, wrongCookie: () => {} })));
}
