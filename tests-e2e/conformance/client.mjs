// The client that the suite's client scenarios judge: plugbay, with the scenario's server as its only one, and a host
// made of the official TypeScript SDK v2 that makes it act.
//
// Usage: node client.mjs URL     (by the suite, which names the scenario in the environment)
//
// PLUGBAY_BIN is the gateway, PLUGBAY_HOST_ERA the era in which the host speaks to it.
// Where the scenario's server wants a login, the user logs in with plugbay's command before the host lists anything, and
// by elicitation when a call needs another login.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { browse, isRefused, login, needsUser, settings } from "./logins.mjs";
import { client as sdk } from "./sdk.mjs";

const PATIENCE_MS = 120_000;
const PAUSE_MS = 500;
const TEST_TOOL = "test-tool";
const [url] = process.argv.slice(2);
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_PROTOCOL_VERSION: version } = process.env;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const modern = process.env.PLUGBAY_HOST_ERA === "modern";

// A modern host asks the gateway for its versions. It starts another process for that, unless its transport is not just
// the SDK's; but the suite is to see one client.
class OneProcess extends sdk.StdioClientTransport {}

const home = mkdtempSync(join(tmpdir(), "plugbay-conformance-client-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));
const config = configure();
if (needsUser(scenario)) await logIn();
const host = await connect();
try {
    await act(scenario)(await listed());
} finally {
    await host.close();
}
process.exit();

function act(scenario) {
    if (isRefused(scenario)) return offersNothing;
    return ACTS()[scenario] ?? (scenario.startsWith("auth/") ? callTestTool : callEverything);
}

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
            for (const { name, arguments: given } of context.toolCalls) await call(name, given);
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
        // No token is ever enough for this server: it is for plugbay to give up.
        "auth/scope-retry-limit": () => call(TEST_TOOL).catch(() => {}),
        // The second request with a token is answered with another authorization server, so before the tools are known.
        "auth/authorization-server-migration": async (tools) => {
            if (!isOffered(tools)) await logIn();
            await callTestTool(await offered());
        },
    };
}

function isOffered(tools) {
    return tools.some((tool) => tool.name === TEST_TOOL);
}

function offersNothing(tools) {
    if (isOffered(tools)) throw new Error(`plugbay lists ${TEST_TOOL} without a login`);
}

async function callTestTool(tools) {
    if (!isOffered(tools)) throw new Error(`plugbay does not list ${TEST_TOOL}: ${JSON.stringify(tools)}`);
    const { isError, content } = await call(TEST_TOOL);
    if (isError) throw new Error(`${TEST_TOOL} failed: ${JSON.stringify(content)}`);
}

// The tools, as soon as plugbay knows of the login.
async function offered() {
    const end = Date.now() + PATIENCE_MS / 4;
    for (;;) {
        const tools = await listed();
        if (isOffered(tools) || Date.now() > end) return tools;
        await sleep(PAUSE_MS);
    }
}

async function logIn() {
    const { code, said } = await login(process.env.PLUGBAY_BIN, config, { env: environment(), cwd: home });
    const refused = isRefused(scenario);
    if ((code === 0) === refused) throw new Error(`plugbay auth login ended with ${code}; it said:\n${said}`);
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

// The scenario's server is the only one, and its tools keep their names.
function configure() {
    const server = { type: "http", url, plugbay: { prefix: false } };
    if (scenario.startsWith("auth/")) server.oauth = settings(scenario, context, home, version === "2026-07-28");
    const file = join(home, "config.json");
    writeFileSync(file, JSON.stringify({ mode: "all", listWait: "15s", mcpServers: { suite: server } }));
    return file;
}

// A home of its own.
function environment() {
    const folders = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"];
    return { PATH: process.env.PATH, ...Object.fromEntries(folders.map((name) => [name, home])) };
}

// Over stdio.
async function connect() {
    const args = ["serve", "--no-daemon", "--config", config];
    const gateway = { command: process.env.PLUGBAY_BIN, args, env: environment(), cwd: home };
    const transport = new OneProcess(gateway);
    const mode = modern ? { pin: "2026-07-28" } : "legacy";
    const capabilities = { sampling: {}, roots: {}, elicitation: { form: { applyDefaults: true }, url: {} } };
    const info = { name: "conformance-host", version: "1.0.0" };
    const host = new sdk.Client(info, { capabilities, versionNegotiation: { mode } });
    // The user confirms what there is to confirm and leaves all else as it was proposed.
    host.setRequestHandler("elicitation/create", async ({ params }) => {
        if (params.mode === "url") {
            await browse(params.url);
            return { action: "accept" };
        }
        const asked = Object.entries(params.requestedSchema?.properties ?? {});
        const content = Object.fromEntries(asked.filter(([, field]) => !("default" in field)).map(([name]) => [name, true]));
        return { action: "accept", content };
    });
    await host.connect(transport, { timeout: PATIENCE_MS });
    return host;
}
