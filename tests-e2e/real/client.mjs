// A host on stdio, as small as can be: newline JSON-RPC to one child process, whose lines stay as they came.

import { spawn } from "node:child_process";

const PATIENCE_MS = 300_000;
const GRACE_MS = 3_000;
const running = new Set();

export class Failure extends Error {}

export class Client {
    #child;
    #waiting = new Map();
    #listeners = new Map();
    #rest = [];
    #next = 1;
    #ended = null;
    #meta;
    said = "";

    // `options` are those of `spawn`; each child leads a process group, so that nothing of it is left.
    constructor(command, args, options = {}) {
        this.#child = spawn(command, args, { ...options, detached: true, stdio: "pipe" });
        running.add(this);
        this.#child.on("error", (error) => this.#end(error.message));
        this.#child.on("exit", (code, signal) => this.#end(`ended with ${signal ?? code}`));
        this.#child.stdin.on("error", () => {});
        this.#child.stderr.setEncoding("utf8").on("data", (text) => (this.said = (this.said + text).slice(-20_000)));
        this.#child.stdout.on("data", (chunk) => this.#read(chunk));
    }

    get pid() {
        return this.#child.pid;
    }

    async initialize({ name = "real-host", capabilities = {} } = {}) {
        const params = { protocolVersion: "2025-11-25", capabilities, clientInfo: { name, version: "1" } };
        const { result } = await this.request("initialize", params);
        this.notify("notifications/initialized");
        return result;
    }

    // Opens in the modern era, which has no handshake; a failure if the server does not know it.
    async discover({ name = "real-host", patience = 20_000 } = {}) {
        const version = "2026-07-28";
        this.#meta = {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": { name, version: "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        };
        const { result } = await this.request("server/discover", {}, patience);
        if (!result.supportedVersions?.includes(version)) throw this.#failure("server/discover", `not ${version}`);
    }

    // The response, parsed, and its line; an error response is a failure.
    request(method, params, patience = PATIENCE_MS) {
        const id = this.#next++;
        const response = new Promise((resolve, reject) => {
            if (this.#ended) return reject(this.#failure(method, this.#ended));
            const timer = setTimeout(() => this.#settle(id, { problem: `no answer in ${patience} ms` }), patience);
            this.#waiting.set(id, { method, resolve, reject, timer });
        });
        this.#send({ jsonrpc: "2.0", id, method, params: this.#meta ? { ...params, _meta: this.#meta } : params });
        return response;
    }

    notify(method, params) {
        this.#send({ jsonrpc: "2.0", method, params });
    }

    // Calls `listener` at each notification of this method.
    on(method, listener) {
        this.#listeners.set(method, listener);
    }

    // As a host does it: closes stdin, and kills what is left after a while.
    async close() {
        this.#child.stdin.end();
        if (!this.#ended) await Promise.race([new Promise((done) => this.#child.once("exit", done)), later(GRACE_MS)]);
        this.kill();
    }

    kill() {
        running.delete(this);
        try {
            process.kill(-this.#child.pid, "SIGKILL");
        } catch {
            // It has ended by itself, or never started.
        }
    }

    #send(message) {
        if (!this.#ended) this.#child.stdin.write(`${JSON.stringify(message)}\n`);
    }

    #read(chunk) {
        let start = 0;
        for (let at; (at = chunk.indexOf(10, start)) >= 0; start = at + 1) {
            this.#rest.push(chunk.subarray(start, at));
            const line = Buffer.concat(this.#rest).toString("utf8");
            this.#rest = [];
            this.#take(line);
        }
        this.#rest.push(chunk.subarray(start));
    }

    #take(line) {
        let message;
        try {
            message = JSON.parse(line);
        } catch {
            return; // Some servers print a greeting.
        }
        if (message.method === undefined) return this.#settle(message.id, { message, line });
        if (message.id === undefined) return this.#listeners.get(message.method)?.(message.params);
        this.#answer(message);
    }

    // A server may ask before it lists; one that gets no answer may wait for ever.
    #answer({ id, method }) {
        const results = { ping: {}, "roots/list": { roots: [] } };
        const error = { code: -32601, message: `this host does not know ${method}` };
        this.#send({ jsonrpc: "2.0", id, ...(results[method] ? { result: results[method] } : { error }) });
    }

    #settle(id, { message, line, problem }) {
        const call = this.#waiting.get(id);
        if (!call) return;
        this.#waiting.delete(id);
        clearTimeout(call.timer);
        if (problem) call.reject(this.#failure(call.method, problem));
        else if (message.error) call.reject(this.#failure(call.method, JSON.stringify(message.error)));
        else call.resolve({ result: message.result, line });
    }

    #end(why) {
        this.#ended ??= why;
        for (const id of [...this.#waiting.keys()]) this.#settle(id, { problem: this.#ended });
    }

    #failure(method, problem) {
        return new Failure(`${method}: ${problem}`);
    }
}

export function later(ms) {
    return new Promise((done) => setTimeout(done, ms));
}

export function killAll() {
    for (const client of [...running]) client.kill();
}

process.on("exit", killAll);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));
