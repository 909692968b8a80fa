// The client that the suite's client scenarios judge: plugbay, with the scenario's server as its only one, and a host
// made of the official TypeScript SDK v2 that makes it act.
//
// Usage: node client.mjs URL     (by the suite, which names the scenario in the environment)
//
// PLUGBAY_BIN is the gateway, PLUGBAY_HOST_ERA the era in which the host speaks to it.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { client as sdk } from "./sdk.mjs";

const PATIENCE_MS = 120_000;
const [url] = process.argv.slice(2);
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context } = process.env;
const modern = process.env.PLUGBAY_HOST_ERA === "modern";

const home = mkdtempSync(join(tmpdir(), "plugbay-conformance-client-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));
const host = await connect();
try {
    await (ACTS()[scenario] ?? callEverything)(await listed());
} finally {
    await host.close();
}
process.exit();

function ACTS() {
    return {
        initialize: () => {},
        "request-metadata": () => {},
        "json-schema-ref-no-deref": () => {},
        tools_call: () => call("add_numbers", { a: 2, b: 3 }),
        "json-schema-2020-12-preservation": (tools) => {
            const schema = tools.find((tool) => tool.name === "json_schema_2020_12_tool").inputSchema;
            return call("json_schema_echo", { schema });
        },
        "http-standard-headers": useEverything,
        "http-custom-headers": async () => {
            for (const { name, arguments: given } of JSON.parse(context).toolCalls) await call(name, given);
        },
        "http-invalid-tool-headers": async (tools) => {
            for (const tool of tools) await call(tool.name, { region: "north" });
        },
        "sep-2322-client-request-state": async () => {
            const asking = call("test_mrtr_echo_state");
            await call("test_mrtr_unrelated");
            await asking;
            await call("test_mrtr_no_state");
            // Complete to plugbay, but against the rules to a host of the same version, which is free to say so.
            await call("test_mrtr_no_result_type").catch(() => {});
        },
    };
}

async function callEverything(tools) {
    for (const tool of tools) await call(tool.name);
}

async function useEverything(tools) {
    await callEverything(tools);
    for (const { uri } of (await host.listResources()).resources) await host.readResource({ uri });
    for (const { name } of (await host.listPrompts()).prompts) await host.getPrompt({ name });
}

function call(name, given = {}) {
    return host.callTool({ name, arguments: given }, { timeout: PATIENCE_MS });
}

async function listed() {
    return (await host.listTools({}, { cacheMode: "refresh" })).tools;
}

// Over stdio, to a gateway in a home of its own.
async function connect() {
    const server = { type: "http", url, plugbay: { prefix: false } };
    const config = join(home, "config.json");
    writeFileSync(config, JSON.stringify({ mode: "all", listWait: "15s", mcpServers: { suite: server } }));
    const folders = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"];
    const env = { PATH: process.env.PATH, ...Object.fromEntries(folders.map((name) => [name, home])) };
    const args = ["serve", "--no-daemon", "--config", config];
    const transport = new sdk.StdioClientTransport({ command: process.env.PLUGBAY_BIN, args, env, cwd: home });
    const mode = modern ? { pin: "2026-07-28" } : "legacy";
    const capabilities = { sampling: {}, roots: {}, elicitation: { form: { applyDefaults: true } } };
    const info = { name: "conformance-host", version: "1.0.0" };
    const host = new sdk.Client(info, { capabilities, versionNegotiation: { mode } });
    // The user confirms what there is to confirm and leaves all else as it was proposed.
    host.setRequestHandler("elicitation/create", ({ params }) => {
        const asked = Object.entries(params.requestedSchema?.properties ?? {});
        const content = Object.fromEntries(asked.filter(([, field]) => !("default" in field)).map(([name]) => [name, true]));
        return { action: "accept", content };
    });
    await host.connect(transport, { timeout: PATIENCE_MS });
    return host;
}
