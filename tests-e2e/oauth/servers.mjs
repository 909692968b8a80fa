// The authorization server and the MCP server of one scenario, as processes.

import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Process } from "./processes.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const PATIENCE_MS = 60_000;

export class AuthorizationServer {
    issuer;
    // What it knew before it was killed.
    #secrets = [];
    #metrics = [];
    #args;
    #env;
    #process;

    // `args` are those of the program. It keeps its store in this folder.
    constructor(folder, args, env = {}) {
        this.#args = [...args, "--store", join(folder, "authorization-server.json")];
        this.#env = env;
    }

    async start() {
        const port = this.issuer ? ["--port", new URL(this.issuer).port] : [];
        this.#process = run("authorization-server.mjs", [...this.#args, ...port], this.#env);
        this.issuer = (await firstLine(this.#process)).issuer;
        return this;
    }

    // As a crash: nothing is said, and the port answers no more.
    async kill() {
        this.#secrets.push(...(await this.#get("secrets")));
        this.#metrics.push(await this.#get("metrics"));
        this.stop();
        await this.#process.ended;
    }

    stop() {
        this.#process.kill();
    }

    // The counts over all restarts.
    async metrics() {
        const all = [...this.#metrics, await this.#get("metrics").catch(() => ({}))];
        return all.reduce(add);
    }

    async secrets() {
        return [...this.#secrets, ...(await this.#get("secrets").catch(() => []))];
    }

    // {"delayMs", "status", "paths"}: how it answers requests for these paths; without arguments, as it should.
    behave(behaviour = {}) {
        return this.#post("behaviour", behaviour);
    }

    // The user withdraws every access that was granted.
    revokeAll() {
        return this.#post("revoke");
    }

    #get(what) {
        return json(fetch(`${this.issuer}/test/${what}`));
    }

    #post(what, body = {}) {
        return json(fetch(`${this.issuer}/test/${what}`, { method: "POST", body: JSON.stringify(body) }));
    }
}

export class ResourceServer {
    url;
    #process;

    async start(issuer, era) {
        this.#process = run("resource-server.mjs", ["--issuer", issuer, "--era", era]);
        this.url = (await firstLine(this.#process)).url;
        return this;
    }

    stop() {
        this.#process.kill();
    }

    // {requests: [{method, tool, authorization, status}], notes}
    seen() {
        return json(fetch(new URL("/test/seen", this.url)));
    }

    // The tokens that it has seen are worth nothing from now on.
    refuseTokens() {
        return json(fetch(new URL("/test/refuse", this.url), { method: "POST" }));
    }
}

function run(file, args, env = {}) {
    return new Process(process.execPath, [join(HERE, file), ...args], { env: { ...process.env, ...env } });
}

async function firstLine(process) {
    return JSON.parse((await process.until(/^\{.*\}$/m, PATIENCE_MS))[0]);
}

async function json(response) {
    return (await response).json();
}

function add(one, other) {
    const sum = (a, b) => {
        if (Array.isArray(a)) return [...a, ...(b ?? [])];
        return typeof a === "object" ? add(a, b ?? {}) : (a ?? 0) + (b ?? 0);
    };
    const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
    return Object.fromEntries([...keys].map((key) => [key, key in one ? sum(one[key], other[key]) : other[key]]));
}
