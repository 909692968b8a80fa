// Runs the scenarios of OAuth logins and prints a row for each. Usage: see ../oauth.sh

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { table } from "../real/table.mjs";
import { logins } from "./logins.mjs";
import { killAll } from "./processes.mjs";
import { secrets } from "./secrets.mjs";
import { sessions } from "./sessions.mjs";
import { tokens } from "./tokens.mjs";
import { World } from "./world.mjs";

const SCENARIOS = { ...logins, ...sessions, ...tokens, ...secrets };
const AT_ONCE = 2;
// Nearly the same as another one: not in every run of CI.
const LIKE_ANOTHER = [
    /legacy/,
    /a fixed port/,
    /closes the browser/,
    /of those that the issuer lists/,
    /one command after another/,
    /slow during a refresh/,
    /without a revocation endpoint/,
];

const { values: options } = parseArgs({
    options: {
        plugbay: { type: "string", default: process.env.PLUGBAY_BIN ?? built() },
        scenario: { type: "string", multiple: true },
        quick: { type: "boolean", default: false },
        keep: { type: "boolean", default: false },
    },
});
const chosen = Object.keys(SCENARIOS)
    .filter((name) => options.scenario?.some((part) => name.includes(part)) ?? true)
    .filter((name) => !options.quick || !LIKE_ANOTHER.some((like) => like.test(name)));
if (chosen.length === 0) {
    console.error(`oauth: there is no such scenario; there are:\n${Object.keys(SCENARIOS).join("\n")}`);
    process.exit(2);
}

const scratch = mkdtempSync(join(tmpdir(), "plugbay-oauth-"));
const shots = join(process.env.PLUGBAY_E2E_DIR, "oauth");
mkdirSync(shots, { recursive: true });
let kept = options.keep;
process.on("exit", () => {
    killAll();
    if (!kept) rmSync(scratch, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));

const rows = [];
const queue = chosen.entries();
const worker = async () => {
    for (const [index, name] of queue) rows[index] = await judge(name, join(scratch, String(index)));
};
await Promise.all(Array.from({ length: AT_ONCE }, worker));

const failed = rows.filter(({ problem }) => problem);
kept ||= failed.length > 0;
console.log(table(["scenario", "result", "seconds", "token requests"], rows.map(({ cells }) => cells)));
console.log(process.env.CHROMIUM ? `the pages that users saw last: ${shots}` : "no Chromium: the users had no browser, and nobody has seen the pages");
for (const { cells: [name], problem } of failed) console.log(`\nFAILED: ${name}\n${problem}`);
if (kept) console.log(`\nall that was written: ${scratch}/*/transcript.txt`);
process.exit(failed.length > 0 ? 1 : 0);

async function judge(name, folder) {
    mkdirSync(folder);
    const world = new World({ program: resolve(options.plugbay), folder, shots });
    const start = Date.now();
    let remark, problem, requests;
    try {
        remark = await SCENARIOS[name](world, { folder });
    } catch (error) {
        problem = error.message;
    }
    const seconds = ((Date.now() - start) / 1000).toFixed(1);
    try {
        requests = (await world.issuer?.metrics())?.tokenRequests;
        const found = await world.close();
        if (found.length > 0) problem = [problem, `secrets in: ${found.join(", ")}`].filter(Boolean).join("\n");
    } catch (error) {
        problem ??= error.message;
    }
    writeFileSync(join(folder, "transcript.txt"), `${name}\n\n${world.transcript()}`);
    const result = problem ? "FAILED" : remark ? `ok: ${remark}` : "ok";
    return { cells: [name, result, seconds, requests ?? "–"], problem };
}

function built() {
    const target = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL("../../target", import.meta.url));
    return join(target, "debug/plugbay");
}
