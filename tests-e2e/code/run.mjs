// Tasks over six real servers, each once with calls and once with code. Usage: see ../code.sh

import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual, parseArgs } from "node:util";

import { count } from "../hosts/measure/tokens.mjs";
import { Gateway } from "./gateway.mjs";
import { CONVERSATION, play } from "./play.mjs";
import { table } from "./table.mjs";
import { TASKS } from "./tasks.mjs";
import { World } from "./world.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const { values: options } = parseArgs({
    options: {
        plugbay: { type: "string", default: process.env.PLUGBAY_BIN ?? join(HERE, "../../target/debug/plugbay") },
        task: { type: "string", multiple: true },
        era: { type: "string", default: "modern" },
        over: { type: "string", default: "stdio" },
    },
});

const tasks = TASKS.filter(({ name }) => !options.task || options.task.some((part) => name.includes(part)));
if (tasks.length === 0) stop(2, `no task is called so; there are:\n${TASKS.map(({ name }) => name).join("\n")}`);
if (!["modern", "legacy"].includes(options.era)) stop(2, `there is no era ${options.era}`);
if (!["stdio", "http", "daemon"].includes(options.over)) stop(2, `there is no way ${options.over}`);

const world = new World();
let problems = 0;
try {
    const how = { ...options, plugbay: resolve(options.plugbay) };
    const gateways = { direct: await Gateway.open(how, "search", world), code: await Gateway.open(how, "code", world) };
    const played = [];
    for (const task of tasks) played.push({ name: task.name, direct: await version(task, "direct"), code: await version(task, "code") });
    for (const side of ["direct", "code"]) {
        const calls = await gateways[side].close();
        for (const { [side]: each } of played) each.inner = calls.filter(({ at }) => Date.parse(at) >= each.from && Date.parse(at) <= each.to).length;
    }
    console.log(table(played));
    const surface = (side) => `${count(gateways[side].surface)} (${side})`;
    console.log(`\nEach turn begins with ${CONVERSATION} tokens of a host, and plugbay's tools and instructions: ${surface("direct")}, ${surface("code")}.`);
    console.log(problems === 0 ? `All ${2 * played.length} answers are correct.` : `${problems} of ${2 * played.length} answers are wrong.`);

    async function version(task, side) {
        const expected = task.expected(world);
        const outcome = await play(gateways[side], task[side], task.name);
        const wrong = !isDeepStrictEqual(outcome.answer, expected);
        const undone = task.effect && !task.effect(world);
        if (wrong || undone) {
            problems += 1;
            const found = wrong ? `the answer is ${JSON.stringify(outcome.answer)}, not ${JSON.stringify(expected)}` : "the answer is right, the work is not done";
            console.error(`${task.name}, ${side}: ${found}. ${outcome.failure ?? ""}`);
        }
        // Others change nothing.
        if (task.effect) world.reset();
        return outcome;
    }
} finally {
    world.remove();
}
process.exit(problems === 0 ? 0 : 1);

function stop(code, message) {
    console.error(`code: ${message}`);
    process.exit(code);
}
