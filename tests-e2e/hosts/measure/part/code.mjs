// Hosts that run code: tools are called through plugbay in `auto`, and a result is a value in their script.

import { play } from "../play.mjs";
import { surface } from "../surface.mjs";

export async function code(run, found) {
    const steps = function* (script) {
        const first = script.turns[0].tools;
        found.codeMode = first.some(({ name }) => name === "ALL_TOOLS" || name === "$codemode.search");
        if (!found.codeMode) return undefined;
        const value = yield { tool: "get-structured-content", input: { location: "Chicago" }, field: "temperature", query: "structured weather content" };
        found.value = value.missing ? "not offered" : value.text.includes("VALUE number");
        if (found.value !== true) found.says = value.text?.slice(0, 300);
        return undefined;
    };
    const { log, problem } = await play(run, "auto", steps);
    found.auto = surface(log);
    if (problem) found.problem = problem;
    run.say(JSON.stringify(found));
}
