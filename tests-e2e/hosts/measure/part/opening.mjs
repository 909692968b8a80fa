// Parts 1 and 2: how a host opens, what plugbay sees of it, which mode `auto` gives it, and whether it defers tools.

import { fileURLToPath } from "node:url";

import { lines, messages, observed } from "../../observed.mjs";
import { play } from "../play.mjs";
import { listed, surface } from "../surface.mjs";

const PROBE = fileURLToPath(new URL("../../probe-server.mjs", import.meta.url));
// What profiles may ask of the environment.
const VARIABLES = ["ENABLE_TOOL_SEARCH", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "ANTHROPIC_BASE_URL", "OPENCODE_EXPERIMENTAL_CODE_MODE"];
const MOST = 60;

export async function opening(run, found) {
    const through = await play(run, "auto", function* () {});
    if (!observed(through.log)?.client) throw new Error(`it did not open: ${through.output.slice(-600)}`);
    Object.assign(found, hello(through.log), { environment: environment(through.log) });
    found.auto = surface(through.log);
    found.autoSays = lines(through.log).map(({ line }) => line.match(/mode for .*/)?.[0]).filter(Boolean).at(-1);
    found.listed = listed(through.log).length;
    found.direct = hello((await play(run, "direct", function* () {}, { servers: [plain(1)] })).log);
}

export async function deferral(run, found) {
    const [most] = await shown(run, MOST);
    found.codeMode = most.code;
    found.shownOfMany = most.eager;
    if (most.code || most.eager === MOST) return;
    // The smallest number of tools of which it shows none or not all: between `fewest`, which it shows, and `many`.
    let [fewest, many] = [0, MOST];
    while (many - fewest > 1) {
        const middle = fewest === 0 && many === MOST ? 1 : Math.floor((fewest + many) / 2);
        const [{ eager }] = await shown(run, middle);
        if (eager === middle) fewest = middle;
        else many = middle;
    }
    found.defersFrom = many;
}

async function shown(run, count) {
    const { script, output } = await play(run, "direct", function* () {}, { servers: [plain(count)] });
    const [turn] = script.turns;
    if (!turn) throw new Error(`it asked its model nothing: ${output.slice(-600)}`);
    const own = turn.tools.filter(({ name }) => /plain_\d+$/.test(name));
    const code = turn.tools.some(({ name }) => name === "ALL_TOOLS" || name === "$codemode.search");
    const eager = own.filter(({ deferred }) => !deferred).length;
    run.say(`${count} tools: ${eager} shown${code ? ", in a script" : ""}`);
    return [{ eager, code }];
}

function plain(count) {
    return { name: "probe", command: process.execPath, args: [PROBE, "plain", String(count)] };
}

function hello(log) {
    const { client, protocol, capabilities, opening } = observed(log) ?? {};
    const methods = new Set(messages(log).filter(({ from }) => from === "host").map(({ message }) => message.method));
    return {
        client,
        protocol,
        era: methods.has("initialize") ? "legacy" : "modern",
        capabilities: Object.keys(capabilities ?? {}),
        extensions: Object.keys(capabilities?.extensions ?? {}),
        listens: methods.has("subscriptions/listen"),
        opening,
    };
}

function environment(log) {
    const given = JSON.parse(lines(log).find(({ from }) => from === "environment")?.line ?? "{}");
    const seen = VARIABLES.filter((name) => name in given);
    return { count: Object.keys(given).length, names: Object.keys(given).sort(), seen };
}
