// The world of one scenario: an authorization server, an MCP server behind it, a user, and plugbay in a home of its own.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Host } from "./host.mjs";
import { Process } from "./processes.mjs";
import { AuthorizationServer, ResourceServer } from "./servers.mjs";
import { findSecrets } from "./canary.mjs";

const BROWSER = fileURLToPath(new URL("browser-program.mjs", import.meta.url));
// Only what fails waits that long, also on a machine at ten times its load.
export const PATIENCE_MS = 60_000;
// How long a login may go on after the user has seen its last page, and a browser after the login.
const GRACE_MS = 30_000;
// What a user has to type who is not logged in.
export const COMMAND = /plugbay auth login notes/;

export class World {
    issuer;
    server;
    #program;
    #folder;
    #home;
    #config;
    #env;
    #shots;
    #users = 0;
    #written = [];
    #hosts = [];

    constructor({ program, folder, shots }) {
        [this.#program, this.#folder, this.#shots] = [program, folder, shots];
        this.#home = join(folder, "home");
        this.#config = join(folder, "config.json");
        const folders = { XDG_CONFIG_HOME: "config", XDG_CACHE_HOME: "cache", XDG_STATE_HOME: "state", XDG_DATA_HOME: "data", XDG_RUNTIME_DIR: "run" };
        const below = Object.entries(folders).map(([name, folder]) => [name, join(this.#home, folder)]);
        mkdirSync(join(this.#home, "run"), { recursive: true, mode: 0o700 });
        this.#env = { PATH: process.env.PATH, HOME: this.#home, ...Object.fromEntries(below) };
    }

    // Starts both servers and writes the configuration. `issuer` has options of authorization-server.mjs, `oauth` is what
    // the user configures.
    async open({ issuer = [], issuerEnv = {}, era = "both", oauth, settings = {} } = {}) {
        this.issuer = await new AuthorizationServer(this.#folder, issuer, issuerEnv).start();
        this.server = await new ResourceServer().start(this.issuer.issuer, era);
        const entry = { type: "http", url: this.server.url, ...(oauth && { oauth }) };
        writeFileSync(this.#config, JSON.stringify({ mode: "all", ...settings, mcpServers: { notes: entry } }, null, 2));
    }

    get home() {
        return this.#home;
    }

    // Runs a command of plugbay to its end: {code, stdout, stderr}.
    async run(args, { env = {}, patience = PATIENCE_MS } = {}) {
        const process = this.start(args, env);
        process.endInput();
        return process.end(patience);
    }

    // A command of plugbay that goes on.
    start(args, env = {}) {
        const process = new Process(this.#program, [...args, "--config", this.#config], { cwd: this.#home, env: { ...this.#env, ...env } });
        this.#written.push(process);
        return process;
    }

    // Logs in with the browser: what the command said, and `page`, the last page that the user saw.
    async login({ consent = true, shot, more = [] } = {}) {
        const user = this.user({ consent, shot });
        const login = this.start(["auth", "login", "notes", ...more], user.env);
        const seen = user.report().catch(({ message }) => ({ failed: message }));
        // When one of them has ended, the other does soon, or never.
        await Promise.race([login.ended, seen]);
        const page = await Promise.race([seen, later(GRACE_MS)]);
        await Promise.race([login.ended, later(GRACE_MS)]);
        login.kill();
        const done = await login.ended;
        return { ...done, page: page ?? { failed: "no browser was opened" } };
    }

    // Logs in, and fails unless it works.
    async loggedIn() {
        const { code, stdout, stderr, page } = await this.login();
        assert.equal(code, 0, `plugbay auth login: ${stdout}${stderr}${JSON.stringify(page)}`);
    }

    // A user with a browser, for the environment of plugbay.
    user({ consent = true, shot } = {}) {
        const report = join(this.#folder, `user-${(this.#users += 1)}.json`);
        const { PLUGBAY_E2E_DIR, CHROMIUM } = process.env;
        const options = JSON.stringify({ consent, screenshot: shot && join(this.#shots, `${shot}.png`) });
        const env = { BROWSER, USER_OPTIONS: options, USER_REPORT: report, PLUGBAY_E2E_DIR, ...(CHROMIUM && { CHROMIUM }) };
        const read = () => (existsSync(report) ? JSON.parse(readFileSync(report, "utf8")) : undefined);
        return { env, read, report: () => eventually("the browser to be opened and to end its visit", read) };
    }

    // One call with a process of its own.
    call(tool, ...args) {
        return this.run(["call", `notes.${tool}`, ...args]);
    }

    // Who the MCP server takes us for; fails unless the call works.
    async whoami() {
        const { code, stdout, stderr } = await this.call("whoami");
        assert.equal(code, 0, `plugbay call notes.whoami: ${stdout}${stderr}`);
        return JSON.parse(stdout.slice(stdout.indexOf("{"), stdout.lastIndexOf("}") + 1));
    }

    // A call that fails and names the command that helps.
    async needsLogin(tool = "whoami", ...args) {
        const { code, stdout, stderr } = await this.call(tool, ...args);
        assert.equal(code, 1, `the call must fail: ${stdout}${stderr}`);
        assert.match(stdout + stderr, COMMAND, "the failure must name the command that helps");
    }

    // The entry of the server in `plugbay auth status --json`.
    async status() {
        const { code, stdout, stderr } = await this.run(["auth", "status", "--json"]);
        assert.equal(code, 0, stderr);
        return JSON.parse(stdout).servers.find(({ name }) => name === "notes");
    }

    // A host with `plugbay serve` in a session of its own; see host.mjs.
    async host(options = {}) {
        const host = new Host({ program: this.#program, config: this.#config, env: this.#env, cwd: this.#home, ...options });
        this.#hosts.push(host);
        this.#written.push(host);
        await host.connect(PATIENCE_MS);
        return host;
    }

    // `plugbay serve --http`: the address of its endpoint.
    async gateway() {
        const gateway = this.start(["serve", "--http", "127.0.0.1:0"]);
        const [address] = await gateway.until(/127\.0\.0\.1:[1-9]\d*(?=\D)/, PATIENCE_MS, "stderr");
        return `http://${address}/mcp`;
    }

    // Ends what runs, and gives all places where a secret was written down and must not be.
    async close() {
        await Promise.all(this.#hosts.map((host) => host.close()));
        await this.run(["daemon", "stop"]);
        const secrets = (await this.issuer?.secrets()) ?? [];
        for (const process of this.#written) process.kill?.();
        for (const server of [this.issuer, this.server]) server?.stop();
        return findSecrets(secrets, this.#home, this.#written);
    }

    // All that was written, for a person who looks for the cause of a failure.
    transcript() {
        return this.#written.map(({ name, stdout, stderr, how }) => `$ ${name}\n${stdout}${stderr}[${how?.code ?? "no end"}]\n`).join("\n");
    }
}

// Looks until there is something.
export async function eventually(what, look, patience = PATIENCE_MS) {
    const end = Date.now() + patience;
    for (;;) {
        const found = await look();
        if (found) return found;
        if (Date.now() > end) throw new Error(`waited ${patience} ms for ${what}`);
        await later(50);
    }
}

export function later(ms) {
    return new Promise((done) => setTimeout(done, ms));
}
