// Part 6: what happens when the user interrupts a call, and when a server crashes; directly and through plugbay.

import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { newHome, tapped } from "../../drive.mjs";
import { lines, messages } from "../../observed.mjs";
import { play } from "../play.mjs";

const PROBE = fileURLToPath(new URL("../../probe-server.mjs", import.meta.url));
const WAYS = [["direct", "direct"], ["through", "all"]];
const POLL_MS = 50;
const TOLD_WITHIN_MS = 6_000;
const CALLED_WITHIN_MS = 60_000;

// { direct, through }: whether the host cancels the call, and whether the server behind plugbay is told, or ended.
export async function interrupt(run, found) {
    for (const [label, mode] of WAYS) {
        const log = join(newHome(), "server.jsonl");
        const servers = [tapped(log, probe())];
        const steps = function* () {
            yield { tool: "slow", input: { seconds: 60 }, query: "answers after so many seconds" };
        };
        let called = false;
        const during = async (child) => {
            const gone = new Promise((over) => child.once("exit", over));
            called = await Promise.race([until(() => has(log, ({ method, params }) => method === "tools/call" && params.name === "slow"), CALLED_WITHIN_MS), gone.then(() => false)]);
            child.kill("SIGINT");
            await until(() => has(log, cancels) || ended(log), TOLD_WITHIN_MS);
            child.kill("SIGKILL");
        };
        const played = await play(run, mode, steps, { servers, during });
        // Directly, a host that has cancelled may end the server at once.
        const told = has(label === "direct" ? played.log : log, cancels);
        found[label] = !called ? "the tool was not called" : told ? "cancelled" : ended(log) ? "server ended" : "no";
    }
    run.say(JSON.stringify(found));
}

// { direct, through }: what the model is told of the crash, and whether a later call works.
export async function crash(run, found) {
    for (const [label, mode] of WAYS) {
        const seen = (found[label] = {});
        await play(run, mode, () => crashing(seen), { servers: [probe()] });
    }
    run.say(JSON.stringify(found));
}

function* crashing(seen) {
    yield { tool: "two_contents", query: "text and structured content that differ" };
    const crashed = yield { tool: "crash", query: "ends the server in the middle of the call" };
    seen.says = crashed.text?.replace(/\s+/g, " ").slice(0, 240);
    for (const attempt of [1, 2]) {
        const again = yield { tool: "two_contents" };
        const works = !again.missing && /in-the-(text|structure)/.test(again.text);
        seen.next = works ? (attempt === 1 ? "works" : "works at the second call") : again.missing ? "the tools are gone" : "dead";
        if (works) return;
    }
}

function probe() {
    return { name: "probe", command: process.execPath, args: [PROBE] };
}

function cancels({ method }) {
    return method === "notifications/cancelled";
}

function ended(log) {
    return lines(log).some(({ from }) => from === "end");
}

function has(log, fits) {
    return messages(log).some(({ from, message }) => from === "host" && fits(message));
}

async function until(holds, most) {
    const end = Date.now() + most;
    while (Date.now() < end) {
        if (holds()) return true;
        await pause(POLL_MS);
    }
    return false;
}
