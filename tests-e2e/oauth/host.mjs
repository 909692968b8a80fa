// A host made of the official TypeScript SDK v2, with `plugbay serve` over stdio or a gateway over HTTP. It writes down
// every message that it gets.

import { load } from "./packages.mjs";

const sdk = { ...load("@modelcontextprotocol/client"), ...load("@modelcontextprotocol/client/stdio") };

export class Host {
    stdout = "";
    stderr = "";
    // The params of each elicitation, and the ids of those that plugbay called complete.
    elicitations = [];
    completed = [];
    #client;
    #transport;
    #patience;

    // `era`: legacy or modern. `onUrl`: what the user does with an elicitation in URL mode, `undefined` for a host that has
    // none. `args`: further ones of `plugbay serve`. `url`: of a gateway that runs already.
    constructor({ program, config, env, cwd, era = "modern", onUrl, args = ["--no-daemon"], more = {}, url }) {
        this.name = `host (${era}): ${url ?? `plugbay serve ${args.join(" ")}`}`;
        const mode = era === "modern" ? { pin: "2026-07-28" } : "legacy";
        const capabilities = onUrl ? { elicitation: { url: {} } } : {};
        this.#client = new sdk.Client({ name: "oauth-host", version: "1.0.0" }, { capabilities, versionNegotiation: { mode } });
        if (onUrl) {
            this.#client.setRequestHandler("elicitation/create", ({ params }) => {
                this.elicitations.push(params);
                return onUrl(params);
            });
            this.#client.setNotificationHandler("notifications/elicitation/complete", ({ params }) => {
                this.completed.push(params.elicitationId);
            });
        }
        const command = ["serve", ...args, "--config", config];
        this.#transport = url
            ? new sdk.StreamableHTTPClientTransport(new URL(url))
            : new sdk.StdioClientTransport({ command: program, args: command, env: { ...env, ...more }, cwd, stderr: "pipe" });
        this.#transport.stderr?.on("data", (chunk) => (this.stderr += chunk));
    }

    async connect(patience) {
        this.#patience = patience;
        await this.#client.connect(this.#transport, { timeout: patience });
        const take = this.#transport.onmessage;
        this.#transport.onmessage = (message, extra) => {
            this.stdout += `${JSON.stringify(message)}\n`;
            take(message, extra);
        };
    }

    // The text of a result, and whether it is an error; the message of an error response likewise.
    async call(tool, args = {}, timeout = this.#patience) {
        try {
            const { content, isError } = await this.#client.callTool({ name: `notes__${tool}`, arguments: args }, { timeout });
            return { text: content.map(({ text }) => text).join("\n"), failed: isError === true };
        } catch (error) {
            return { text: `${error.message} ${JSON.stringify(error.data ?? "")}`, failed: true };
        }
    }

    async tools() {
        return (await this.#client.listTools({}, { cacheMode: "refresh", timeout: this.#patience })).tools.map(({ name }) => name);
    }

    close() {
        return this.#client.close().catch(() => {});
    }
}
