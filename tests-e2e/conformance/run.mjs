// Runs the suite's server scenarios at the server beside this file, then at plugbay in front of it; or its client
// scenarios at plugbay.
// Usage: see ../conformance.sh

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { judgeClient } from "./clients.mjs";
import { endAll, listen } from "./processes.mjs";
import { run } from "./suite.mjs";
import { compare, render } from "./table.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const VERSIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

const { values: options } = parseArgs({
    options: {
        client: { type: "boolean", default: false },
        direct: { type: "boolean", default: false },
        scenario: { type: "string", multiple: true, default: [] },
        behind: { type: "string", default: "http" },
        version: { type: "string", multiple: true, default: VERSIONS },
        plugbay: { type: "string", default: process.env.PLUGBAY_BIN ?? built() },
    },
});

const scratch = mkdtempSync(join(tmpdir(), "plugbay-conformance-"));
process.on("exit", () => {
    endAll();
    rmSync(scratch, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));

try {
    const bad = options.client ? await judge() : await compareAll();
    process.exitCode = bad > 0 ? 1 : 0;
} catch (error) {
    console.error(`conformance: ${error.message}`);
    process.exitCode = 2;
}
process.exit();

function judge() {
    return judgeClient(resolve(options.plugbay), options.version, options.scenario, scratch);
}

async function compareAll() {
    let worse = 0;
    for (const version of options.version) {
        const direct = await run(await startServer(), version, join(scratch, "direct"));
        const through = options.direct ? undefined : await run(await startPlugbay(), version, join(scratch, "plugbay"));
        const rows = compare(direct, through);
        console.log(render(version, rows));
        worse += rows.filter((row) => row.worse).length;
        // Each version begins with servers in which nothing has changed yet.
        endAll();
    }
    if (worse > 0) console.log(`${worse} scenarios pass directly and fail through plugbay`);
    return worse;
}

function startServer() {
    return listen(process.execPath, [join(HERE, "server.mjs")], { env: { ...process.env, PORT: "0" } });
}

// In a home of its own, in front of one server whose tools keep their names.
async function startPlugbay() {
    const home = mkdtempSync(join(scratch, "home-"));
    const entry = options.behind === "stdio" ? stdioEntry() : { type: "http", url: await startServer() };
    const config = { mode: "all", mcpServers: { conformance: { ...entry, plugbay: { prefix: false } } } };
    const file = join(home, "config.json");
    writeFileSync(file, JSON.stringify(config));
    const folders = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"];
    const env = { ...process.env, ...Object.fromEntries(folders.map((name) => [name, home])) };
    const args = ["serve", "--config", file, "--http", "127.0.0.1:0"];
    return listen(resolve(options.plugbay), args, { env, cwd: home });
}

function stdioEntry() {
    const env = { PLUGBAY_E2E_DIR: process.env.PLUGBAY_E2E_DIR };
    return { command: process.execPath, args: [join(HERE, "server.mjs"), "--stdio"], env };
}

function built() {
    return join(process.env.CARGO_TARGET_DIR ?? join(HERE, "../../target"), "debug/plugbay");
}
