// Part 5: whether a server that is activated is there in the very next turn, or can be called through.

import { play } from "../play.mjs";

const RUNS = 4;
const SERVERS = { time: "get_current_time", git: "git_status", filesystem: "read_text_file", memory: "read_graph", thinking: "sequentialthinking" };

// { rounds, next, found, through, failed }: in the next turn, only by the host's own search, by call-through, not at all.
export async function activation(run, result) {
    Object.assign(result, { rounds: 0, next: 0, found: 0, through: 0, failed: 0 });
    for (let round = 1; round <= RUNS; round += 1) {
        const { problem } = await play(run, "activate", (script) => rounds(script, result));
        if (problem) run.say(problem);
    }
    run.say(JSON.stringify(result));
}

function* rounds(script, result) {
    for (const [server, tool] of Object.entries(SERVERS)) {
        const told = yield { tool: "gateway_activate", input: { name: server }, query: "activate a server" };
        if (told.missing) return "gateway_activate is not offered";
        result.rounds += 1;
        result[yield* outcome(script, server, tool, told)] += 1;
    }
    return undefined;
}

function* outcome(script, server, tool, told) {
    const offered = script.offered(tool);
    if (offered && !offered.deferred) return "next";
    if (told.text.includes("execute_tool")) {
        const called = yield { tool: "execute_tool", input: { name: `${server}__${tool}`, arguments: {} }, query: "execute a tool" };
        return called.missing ? "failed" : "through";
    }
    const called = yield { tool, input: {}, query: tool };
    return called.missing ? "failed" : "found";
}
