// One run of the official suite, reduced to what passed and what failed in each scenario.

import { execFile } from "node:child_process";
import { existsSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const PATIENCE_MS = 900_000;
const CLIENT_PATIENCE_MS = 120_000;
const SUITE = join(process.env.PLUGBAY_E2E_DIR, "node_modules/@modelcontextprotocol/conformance/dist/index.js");

// The suite leaves a folder `server-SCENARIO-TIME` for each scenario.
const FOLDER = /^server-(.+?)-\d{4}-\d\d-\d\dT/;

// The server scenarios, as a map from scenario to { passed, failed: [what went wrong] }.
export async function run(url, version, folder) {
    rmSync(folder, { recursive: true, force: true });
    const args = [SUITE, "server", "--url", url, "--suite", "all", "--spec-version", version, "--output-dir", folder];
    const said = await finish(args);
    const scenarios = new Map();
    for (const name of readdirSync(folder)) {
        const scenario = name.match(FOLDER)?.[1];
        if (scenario) scenarios.set(scenario, count(join(folder, name, "checks.json")));
    }
    if (scenarios.size === 0) throw new Error(`the suite ran nothing:\n${said}`);
    return scenarios;
}

// The client scenarios that there are: [{ scenario, versions }]. What belongs to no version is an extension's.
export async function clientScenarios() {
    const said = await finish([SUITE, "list", "--client"]);
    const lines = [...said.matchAll(/^ +- (\S+) \[(.*)\]$/gm)];
    if (lines.length === 0) throw new Error(`the suite lists no client scenarios:\n${said}`);
    return lines.map(([, scenario, versions]) => ({ scenario, versions: versions.split(",") }));
}

// One client scenario with this command as the client, as { passed, failed }. The suite runs an extension's scenario in
// a version only if it must. To the suite, a warning fails a client.
export async function runClient(command, env, scenario, version, folder) {
    const args = [SUITE, "client", "--command", command, "--scenario", scenario, "--spec-version", version, "--force"];
    const said = await finish([...args, "--timeout", String(CLIENT_PATIENCE_MS), "--output-dir", folder], env);
    const group = join(folder, dirname(scenario));
    const name = existsSync(group) && readdirSync(group).find((name) => name.startsWith(basename(scenario)));
    if (!name) throw new Error(`the suite did not run ${scenario}:\n${said}`);
    const result = count(join(group, name, "checks.json"), ["FAILURE", "WARNING"]);
    // With no check a client that gave up would look like one that had nothing to do.
    const ended = said.match(/Client (exited with code \d+|timed out)/)?.[0];
    if (!ended) return result;
    const complaint = readFileSync(join(group, name, "stderr.txt"), "utf8");
    const error = complaint.match(/^\w*Error: [^]*/m)?.[0] ?? complaint.slice(-300);
    return { ...result, failed: [...result.failed, `${ended}: ${error}`] };
}

function count(file, bad = ["FAILURE"]) {
    let checks;
    try {
        checks = JSON.parse(readFileSync(file, "utf8"));
    } catch {
        return { passed: 0, failed: ["the scenario did not end"] };
    }
    const of = (...statuses) => checks.filter((check) => statuses.includes(check.status));
    const failed = of(...bad).map((check) => `${check.id}: ${check.errorMessage ?? check.description}`);
    return { passed: of("SUCCESS").length, failed };
}

// Its exit code says only what the results say.
function finish(args, env = process.env) {
    return new Promise((resolve, reject) => {
        const options = { env, timeout: PATIENCE_MS, maxBuffer: 64 * 1024 * 1024 };
        execFile(process.execPath, args, options, (error, stdout, stderr) => {
            if (error?.killed) reject(new Error(`the suite did not end in ${PATIENCE_MS} ms:\n${stdout}${stderr}`));
            else resolve(stdout + stderr);
        });
    });
}
