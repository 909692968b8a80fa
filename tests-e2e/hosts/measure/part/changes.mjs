// Part 6: whether a changed list is seen in the next turn, if the result comes at once or a little after the change.

import { fileURLToPath } from "node:url";

import { observed } from "../../observed.mjs";
import { play } from "../play.mjs";

const PROBE = fileURLToPath(new URL("../../probe-server.mjs", import.meta.url));
const PAUSES = [0, 300];

export async function changes(run, found) {
    for (const [label, mode] of [["direct", "direct"], ["through", "all"]]) {
        const seen = (found[label] = {});
        const servers = [{ name: "probe", command: process.execPath, args: [PROBE] }];
        seen.relistedAfterMs = [];
        for (const pause of PAUSES) {
            const { problem, log } = await play(run, mode, (script) => steps(script, seen, pause), { servers });
            if (problem) seen.problem = problem;
            const times = observed(log)?.relisted ?? [];
            seen.relistedAfterMs.push(...times.map((time) => (Number.isNaN(time) ? null : time)));
        }
        // One list soon after a change may have another reason.
        seen.listsAgain = seen.relistedAfterMs.length > 0 && seen.relistedAfterMs.every((time) => time !== null);
    }
    run.say(JSON.stringify(found));
}

function* steps(script, seen, pause) {
    const name = `fresh_${pause}`;
    const told = yield { tool: "reveal", input: { name, pause }, query: "adds a tool and tells of it" };
    if (told.missing) return "reveal is not offered";
    const offered = script.offered(name);
    if (offered) seen[pause] = offered.deferred ? "named" : "next turn";
    else {
        const called = yield { tool: name, query: name };
        seen[pause] = called.missing ? "no" : "found by its search";
    }
    return undefined;
}
