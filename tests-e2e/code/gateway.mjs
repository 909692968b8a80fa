// A gateway in front of the six servers, and the official TypeScript client before it.

import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

// Only a machine on which a server does not start at all waits that long.
const PATIENCE_MS = 240_000;
const LOOK_EVERY_MS = 100;

const peers = process.env.PLUGBAY_E2E_DIR;
const load = createRequire(join(peers, "package.json"));
const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");

export class Gateway {
    #client;
    #world;
    #audit;
    // Ends what the client does not.
    #stop = () => {};

    // What a host shows of plugbay itself: the definitions of its tools, and its instructions.
    surface;

    // `how`: { plugbay, era: "modern" | "legacy", over: "stdio" | "http" | "daemon" }
    static async open(how, mode, world) {
        const gateway = new Gateway();
        await gateway.#open(how, mode, world);
        return gateway;
    }

    async #open({ plugbay, era, over }, mode, world) {
        const negotiated = era === "modern" ? { pin: "2026-07-28" } : "legacy";
        this.#client = new Client({ name: "code-tasks", version: "1.0.0" }, { versionNegotiation: { mode: negotiated } });
        this.#world = world;
        this.#audit = join(world.home, `${mode}.jsonl`);
        const config = join(world.home, `${mode}.json`);
        writeFileSync(config, JSON.stringify({ mode, audit: { file: this.#audit }, mcpServers: servers(world.folder) }));
        const { PATH, LANG } = process.env;
        const env = { PATH, LANG: LANG ?? "C.UTF-8", HOME: world.home };
        const transport = await this.#transport(over, { plugbay, config, env });
        // Also if a task throws.
        process.once("exit", () => this.#stop());
        await this.#client.connect(transport, { timeout: PATIENCE_MS });
        await this.#started();
        const { tools } = await this.#client.listTools();
        const shown = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
        this.surface = `${JSON.stringify(shown)}\n${this.#client.getInstructions() ?? ""}`;
    }

    async #transport(over, { plugbay, config, env }) {
        const args = ["serve", "--config", config];
        if (over === "http") return new StreamableHTTPClientTransport(new URL(await this.#serve(plugbay, [...args, "--http", "127.0.0.1:0"], env)));
        if (over === "daemon") this.#stop = () => execFileSync(plugbay, ["daemon", "stop"], { env, stdio: "ignore" });
        else args.push("--no-daemon");
        return new StdioClientTransport({ command: plugbay, args, env, stderr: "ignore" });
    }

    // Gives the address, which is in the first line that the gateway prints.
    async #serve(plugbay, args, env) {
        const child = spawn(plugbay, args, { env, stdio: ["ignore", "ignore", "pipe"] });
        const ended = new Promise((done) => child.once("exit", done));
        this.#stop = () => (child.kill("SIGTERM"), ended);
        for await (const line of createInterface({ input: child.stderr })) {
            const address = line.match(/http:\S+/)?.[0];
            if (!address) continue;
            child.stderr.resume();
            return address;
        }
        throw new Error("the gateway does not serve");
    }

    // The text of a result: { text, failed }.
    async call({ name, arguments: input }) {
        const result = await this.#client.callTool({ name, arguments: this.#world.real(input) }, { timeout: PATIENCE_MS });
        const text = result.content.map((block) => block.text ?? "").join("\n");
        return { text: this.#world.told(text), failed: result.isError === true };
    }

    // Ends the gateway, and gives the calls of servers' tools that its audit log has: { at, server, tool, outcome }.
    async close() {
        await this.#client.close();
        await this.#stop();
        const lines = readFileSync(this.#audit, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
        if (lines.some(({ lost }) => lost)) throw new Error("the audit log has lost lines");
        return lines.filter(({ server, tool }) => server && tool);
    }

    // A server that never listed its tools may still be starting.
    async #started() {
        const deadline = Date.now() + PATIENCE_MS;
        for (const server of Object.keys(servers(""))) {
            for (;;) {
                const { content } = await this.#client.callTool({ name: "search_tools", arguments: { server } }, { timeout: PATIENCE_MS });
                if (content[0].text.includes(`${server}__`) || content[0].text.includes(`tools.${server}`)) break;
                if (Date.now() > deadline) throw new Error(`${server} does not start: ${content[0].text}`);
                await new Promise((done) => setTimeout(done, LOOK_EVERY_MS));
            }
        }
    }
}

function servers(folder) {
    const npm = (name, args, env) => ({ command: process.execPath, args: [join(peers, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`), ...args], env });
    return {
        files: npm("filesystem", [folder]),
        memory: npm("memory", [], { MEMORY_FILE_PATH: join(folder, "memory.jsonl") }),
        everything: npm("everything", []),
        git: { command: join(peers, "py2/bin/mcp-server-git") },
        time: { command: join(peers, "py2/bin/mcp-server-time"), args: ["--local-timezone", "UTC"] },
        sqlite: { command: join(peers, "py1/bin/mcp-server-sqlite"), args: ["--db-path", join(folder, "shop.db")] },
    };
}
