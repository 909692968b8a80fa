// Shows the pages of two servers in a real browser and judges what the panels show. Usage: see ../apps.sh

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname, join, normalize, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { Process, killAll } from "../oauth/processes.mjs";
import { table } from "../real/table.mjs";

// Only what fails waits that long, also on a machine at ten times its load.
const PATIENCE_MS = 60_000;
const OWN_PAGE = "ui://panel/main.html";
// The eras of host and servers, and the mode of plugbay.
const WAYS = {
    "legacy, all": { era: "legacy", mode: "all" },
    "modern, search": { era: "modern", mode: "search" },
    "legacy host, modern servers, suite": { era: "legacy", servers: "modern", mode: "suite" },
};
const HERE = fileURLToPath(new URL(".", import.meta.url));
const { PLUGBAY_E2E_DIR, CHROMIUM } = process.env;
const MODULES = join(PLUGBAY_E2E_DIR, "node_modules");

const { values: options } = parseArgs({
    options: {
        plugbay: { type: "string", default: process.env.PLUGBAY_BIN ?? built() },
        way: { type: "string", multiple: true },
    },
});
const scratch = mkdtempSync(join(tmpdir(), "plugbay-apps-"));
const shots = join(PLUGBAY_E2E_DIR, "apps");
mkdirSync(shots, { recursive: true });
process.on("exit", () => {
    killAll();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));

const load = createRequire(join(PLUGBAY_E2E_DIR, "package.json"));
const site = await serveSite();
const origin = `http://127.0.0.1:${site.address().port}`;
const env = { PATH: process.env.PATH, HOME: scratch };
const browser = await load("playwright-core").chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"], env });
const rows = [];
let failed = false;
for (const [name, way] of Object.entries(WAYS)) {
    if (!(options.way?.some((part) => name.includes(part)) ?? true)) continue;
    const start = Date.now();
    let result = "ok";
    try {
        await judge(name, way);
    } catch (error) {
        [result, failed] = ["FAILED", true];
        console.log(`FAILED: ${name}\n${error.message}\n`);
    }
    rows.push([name, result, ((Date.now() - start) / 1000).toFixed(1)]);
}
await browser.close();
console.log(table(["host and servers, mode", "panels", "seconds"], rows));
console.log(`screenshots: ${shots}`);
process.exit(failed ? 1 : 0);

async function judge(name, { era, servers = era, mode }) {
    const plugbay = await startPlugbay(servers, mode);
    const page = await browser.newPage({ viewport: { width: 760, height: 620 } });
    page.setDefaultTimeout(PATIENCE_MS);
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    try {
        await page.goto(`${origin}/host.html`);
        await page.waitForFunction(() => globalThis.host);
        await page.evaluate(([url, era]) => host.connect(url, era), [plugbay.url, era]);
        await judgeList(await page.evaluate(() => host.tools()), mode);
        await judgePanels(page, era);
        assert.deepEqual(complaints, []);
    } catch (error) {
        throw new Error([error.message, ...complaints, plugbay.stderr].join("\n"));
    } finally {
        await page.screenshot({ path: join(shots, `${name.replaceAll(/\W+/g, "-")}.png`) });
        await page.close();
        plugbay.kill("SIGTERM");
        await plugbay.end(PATIENCE_MS);
    }
}

// Tools with a page are in the list of every mode, and each page is its own server's.
function judgeList(tools, mode) {
    const page = (name) => tools.find((tool) => tool.name === name)?.page;
    for (const server of ["one", "two"]) {
        assert.equal(page(`${server}__show`), `ui://plugbay/${server}/panel/main.html`, JSON.stringify(tools));
        const listed = tools.some((tool) => tool.name === `${server}__only_${server}`);
        assert.equal(listed, mode === "all", "a tool for the page alone is in the list of mode all, as its server wrote it");
    }
}

async function judgePanels(page, era) {
    const frame = (server) => page.frameLocator(`[id="${server}__show"] iframe`);
    const shows = (server, id, text) => frame(server).locator(`#${id}`, { hasText: text }).waitFor();
    const refresh = (server) => frame(server).locator("#refresh").click();
    // With one panel it is clear whose page calls, if requests belong to a session.
    const [first] = await page.evaluate(() => host.open("one__show"));
    await shows("one", "own", /^own call of one$/);
    await refresh("one");
    await shows("one", "shared", era === "legacy" ? /^refreshed of one$/ : /one__refresh, two__refresh/);
    await page.evaluate(() => document.getElementById("panels").replaceChildren());
    // Both at the same time.
    const both = await page.evaluate(() => host.open("one__show", "two__show"));
    for (const [index, server] of ["one", "two"].entries()) {
        await frame(server).locator("h1", { hasText: new RegExp(`^Page of ${server}$`) }).waitFor();
        await shows(server, "data", new RegExp(`^data of ${server}$`));
        await shows(server, "own", new RegExp(`^own call of ${server}$`));
        const uri = `ui://plugbay/${server}/panel/main.html`;
        const { asked, uri: answered, mimeType, meta, result } = both[index];
        assert.deepEqual([asked, answered, mimeType], [uri, uri, "text/html;profile=mcp-app"]);
        assert.deepEqual(meta, { ui: { csp: { connectDomains: [`https://${server}.example`] } } });
        assert.deepEqual(withoutEnvelope(result), { "example.com/of": server, ui: { resourceUri: uri } });
    }
    assert.deepEqual(first, both[0], "the same as alone");
    // With two panels nobody can tell whose page calls a tool that both servers have: no guess is made.
    for (const server of ["one", "two"]) {
        await refresh(server);
        await shows(server, "shared", /refresh could mean tools of several servers: write one of one__refresh, two__refresh/);
    }
    assert.match(await page.evaluate((uri) => host.read(uri), OWN_PAGE), /^.*Several servers have a page /);
}

// A modern server signs its results.
function withoutEnvelope(meta) {
    return Object.fromEntries(Object.entries(meta).filter(([key]) => !key.startsWith("io.modelcontextprotocol/")));
}

async function startPlugbay(era, mode) {
    const home = mkdtempSync(join(scratch, "home-"));
    const config = join(home, "config.json");
    const entry = (name) => [name, { command: process.execPath, args: [join(HERE, "server.mjs"), name, era], env: { PLUGBAY_E2E_DIR } }];
    writeFileSync(config, JSON.stringify({ mode, mcpServers: Object.fromEntries(["one", "two"].map(entry)) }));
    const args = ["serve", "--http", "127.0.0.1:0", "--allow-origin", origin, "--config", config];
    const folders = { XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home, XDG_STATE_HOME: home, XDG_DATA_HOME: home, XDG_RUNTIME_DIR: home };
    const started = new Process(resolve(options.plugbay), args, { cwd: home, env: { PATH: process.env.PATH, HOME: home, ...folders } });
    const [url] = await started.until(/http:\/\/127\.0\.0\.1:\d+\/mcp/, PATIENCE_MS, "stderr");
    return Object.assign(started, { url });
}

// The host page, and the packages that it is made of.
function serveSite() {
    const html = readFileSync(join(HERE, "host.html"), "utf8").replace("IMPORTS", JSON.stringify(importMap()));
    const types = { ".js": "text/javascript", ".mjs": "text/javascript", ".html": "text/html" };
    const listener = createServer((request, response) => {
        const path = normalize(new URL(request.url, "http://host").pathname);
        const file = path.startsWith("/node_modules/") ? join(MODULES, path.slice("/node_modules".length)) : join(HERE, path);
        try {
            const body = path === "/host.html" ? html : readFileSync(file);
            response.writeHead(200, { "content-type": types[extname(path)] ?? "application/octet-stream" }).end(body);
        } catch {
            response.writeHead(404).end();
        }
    });
    return new Promise((listening) => listener.listen(0, "127.0.0.1", () => listening(listener)));
}

// Where a browser finds what the packages import.
function importMap() {
    const modules = [
        "@modelcontextprotocol/client", "@modelcontextprotocol/client/_shims", "@modelcontextprotocol/core",
        "@modelcontextprotocol/core/internal", "@modelcontextprotocol/ext-apps/app-bridge", "eventsource", "eventsource-parser",
        "eventsource-parser/stream", "pkce-challenge", "zod/v4",
    ];
    return { imports: Object.fromEntries(modules.map((module) => [module, located(module)])) };
}

function located(module) {
    const [, name, rest] = module.match(/^((?:@[^/]+\/)?[^/]+)(.*)$/);
    const { exports } = JSON.parse(readFileSync(join(MODULES, name, "package.json"), "utf8"));
    let target = exports[`.${rest}`];
    while (typeof target === "object") target = target.browser ?? target.import ?? target.default;
    return `/node_modules/${name}/${target.replace(/^\.\//, "")}`;
}

function built() {
    const target = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL("../../target", import.meta.url));
    return join(target, "debug/plugbay");
}
