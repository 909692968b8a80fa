// A host over Streamable HTTP, as small as can be: one session, one request at a time per call.

import { spawn } from "node:child_process";

import { Failure } from "./client.mjs";

export class HttpClient {
    #url;
    #session;
    #next = 1;

    constructor(url) {
        this.#url = url;
    }

    async initialize({ name = "real-host", capabilities = {} } = {}) {
        const params = { protocolVersion: "2025-11-25", capabilities, clientInfo: { name, version: "1" } };
        const { result } = await this.request("initialize", params);
        await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" });
        return result;
    }

    async request(method, params) {
        const id = this.#next++;
        const response = await this.#post({ jsonrpc: "2.0", id, method, params });
        this.#session ??= response.headers.get("mcp-session-id");
        const line = answer(response.headers.get("content-type") ?? "", await response.text(), id);
        if (!line) throw new Failure(`${method}: HTTP ${response.status} without an answer`);
        const message = JSON.parse(line);
        if (message.error) throw new Failure(`${method}: ${JSON.stringify(message.error)}`);
        return { result: message.result, line };
    }

    async close() {
        await fetch(this.#url, { method: "DELETE", headers: this.#headers() });
    }

    #post(message) {
        return fetch(this.#url, { method: "POST", headers: this.#headers(), body: JSON.stringify(message) });
    }

    #headers() {
        const session = this.#session ? { "mcp-session-id": this.#session, "mcp-protocol-version": "2025-11-25" } : {};
        return { "content-type": "application/json", accept: "application/json, text/event-stream", ...session };
    }
}

// The response with this id, in a body of either kind.
function answer(type, body, id) {
    if (!type.startsWith("text/event-stream")) return body;
    const data = body.split(/\r?\n\r?\n/).map((event) => event.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n"));
    return data.filter(Boolean).find((text) => JSON.parse(text).id === id);
}

// Starts `plugbay serve --http` and gives the address of its endpoint and a way to end it.
export function serveHttp(program, file, { cwd, env }) {
    const child = spawn(program, ["--config", file, "serve", "--http", "127.0.0.1:0"], { cwd, env, detached: true, stdio: ["ignore", "ignore", "pipe"] });
    const end = () => {
        try {
            process.kill(-child.pid, "SIGTERM");
        } catch {
            // It has ended by itself.
        }
    };
    process.on("exit", end);
    let said = "";
    return new Promise((resolve, reject) => {
        child.once("exit", (code) => reject(new Failure(`plugbay serve --http ended with ${code}:\n${said}`)));
        child.stderr.setEncoding("utf8").on("data", (text) => {
            said += text;
            const address = said.match(/127\.0\.0\.1:[1-9]\d*(?=\D)/);
            if (address) resolve({ url: `http://${address[0]}/mcp`, end });
        });
    });
}
