// Parts 3 and 4: the tokens of the first request, and of whole conversations.

import { MODES } from "../ground.mjs";
import { conversation } from "../conversation.mjs";
import { play } from "../play.mjs";
import { surface } from "../surface.mjs";
import { counted } from "../tokens.mjs";

// A conversation of so many turns makes one call less: its last turn is the answer. Where tools must be found first, the
// same calls take more requests.
export const TURNS = [4, 5, 10, 20];
const CALLS = Math.max(...TURNS) - 1;
const FIRST_CALLS = 6;

// { without, modes: { direct: { first, adds, requests, cached, conversations } … }, best, auto }
export async function tokens(run, found = {}) {
    const none = await play(run, "none", function* () {});
    found.without = counted(none.script.turns.slice(0, 1))[0]?.tokens;
    if (found.without === undefined) throw new Error(`it asked its model nothing: ${none.output.slice(-600)}`);
    // A first meeting, long enough for plugbay to learn what the servers list to this very host.
    await play(run, "all", (script) => conversation(script, { calls: FIRST_CALLS, finished: [], surface: () => "all" }));
    found.modes = {};
    for (const mode of ["direct", ...MODES, "auto"]) {
        found.modes[mode] = await measured(run, mode, found.without);
        run.keep();
    }
    // Where plugbay cannot see what the host does, `--host` in its entry can say so.
    if (run.host.hidden && run.knows(run.host.profile)) {
        found.modes.told = await measured(run, "auto", found.without, { profile: run.host.profile });
    }
    found.comparison = compared(found.modes);
    return found;
}

async function measured(run, mode, without, more) {
    const finished = [];
    const steps = (script, { log }) => {
        let known = mode === "direct" ? "direct" : undefined;
        return conversation(script, { calls: CALLS, finished, surface: () => (known ??= surface(log)) });
    };
    const played = await play(run, mode, steps, more);
    const { script, problem, seconds, log } = played;
    const requests = counted(script.turns);
    const [first] = requests;
    run.say(`${mode}: ${requests.length} requests, ${finished.length} calls, ${seconds.toFixed(1)} s${problem ? `; ${problem}` : ""}`);
    if (problem && finished.length === 0) run.say(played.output.slice(-400));
    return {
        given: mode === "direct" ? undefined : surface(log),
        problem,
        tools: script.turns[0]?.tools.filter(({ deferred }) => !deferred).length,
        adds: first && first.tokens - without,
        requests: requests.map(({ tokens }) => tokens),
        cached: requests.map(({ cached }) => cached),
        // Numbers of the requests that had the results of the calls, from 0.
        results: finished,
        searches: script.searches,
        beside: script.beside.length,
        everyRequestHasAll: everyRequestHasAll(script.turns),
        conversations: Object.fromEntries(TURNS.map((turns) => [turns, whole(requests, finished[turns - 2])])),
    };
}

// All requests up to the one that has the last result, which the model answers with words.
function whole(requests, last) {
    if (last === undefined) return undefined;
    const all = requests.slice(0, last + 1);
    const sum = (pick) => all.reduce((total, request) => total + pick(request), 0);
    const tokens = sum((request) => request.tokens);
    const cached = sum((request) => request.cached);
    // What a provider bills if it reads from its cache at a tenth of the price.
    return { tokens, requests: all.length, cached, billed: Math.round(tokens - cached * 0.9) };
}

// Whether no request offers less than the first.
function everyRequestHasAll(turns) {
    const names = ({ tools }) => new Set(tools.map(({ name }) => name));
    const first = [...names(turns[0] ?? { tools: [] })];
    return turns.every((turn) => first.every((name) => names(turn).has(name)));
}

// Which of plugbay's modes is best for each length, and how far `auto` is from it in per cent.
export function compared(modes) {
    return Object.fromEntries(
        TURNS.map((turns) => {
            const costs = MODES.map((mode) => [mode, modes[mode]?.conversations[turns]]).filter(([, cost]) => cost);
            const auto = (modes.told ?? modes.auto)?.conversations[turns];
            return [turns, { read: best(costs, auto, "tokens"), billed: best(costs, auto, "billed") }];
        }),
    );
}

function best(costs, auto, field) {
    if (costs.length === 0) return undefined;
    const [mode, cost] = costs.reduce((one, two) => (two[1][field] < one[1][field] ? two : one));
    const behind = auto && Math.round((auto[field] / cost[field] - 1) * 1000) / 10;
    return { mode, tokens: cost[field], autoBehindPercent: behind };
}
