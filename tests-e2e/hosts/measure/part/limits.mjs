// Part 6: names, kinds of content, the size of results, instructions; directly, and through plugbay in `all`.

import { fileURLToPath } from "node:url";

import { EVERY_LENGTH as LENGTHS } from "../../lengths.mjs";
import { play } from "../play.mjs";
import { prompt } from "../tokens.mjs";

const PROBE = fileURLToPath(new URL("../../probe-server.mjs", import.meta.url));
const KILO = [10, 12, 16, 19, 21, 26, 32, 40, 48, 52, 60, 100, 190, 210, 300];

export async function limits(run, found) {
    for (const mode of ["direct", "all"]) found[mode === "all" ? "through" : mode] = await one(run, mode);
    // The entry is called as plugbay's, since profiles reckon with that prefix.
    const named = await play(run, "direct", (script) => finds(script), { servers: [probe("plugbay", "names")] });
    found.names = names(named.script.turns);
    run.say(JSON.stringify(found));
}

async function one(run, mode) {
    const found = {};
    const played = await play(run, mode, (script) => steps(script, found), { servers: [probe("probe")] });
    if (played.problem) found.problem = played.problem;
    return found;
}

function* steps(script, found) {
    const two = yield { tool: "two_contents", query: "text and structured content that differ" };
    if (two.missing) return "two_contents is not offered";
    // Before any result of its own size: the marks are those of the instructions.
    found.instructions = lastMark(prompt(script.turns[two.at]));
    found.shows = shows(two.text);
    for (const kilo of KILO) {
        const { text, missing } = yield { tool: "sized", input: { characters: kilo * 1000 }, query: "text of so many characters" };
        if (missing) return "sized is not offered";
        if (!whole(text, kilo * 1000)) {
            found.cutAt = kilo;
            found.cutTo = text.length;
            break;
        }
        found.wholeUpTo = kilo;
    }
    return undefined;
}

// Where nothing is shown beforehand, tools have to be found: the longest name that can be is between two that were tried.
function* finds(script) {
    if (script.offered(long(40)) || JSON.stringify(script.turns[0].body).includes(long(40))) return undefined;
    let [fits, not] = [0, LENGTHS.length];
    while (not - fits > 1) {
        const middle = Math.floor((fits + not) / 2);
        const { missing } = yield { tool: long(LENGTHS[middle]) };
        if (missing) not = middle;
        else fits = middle;
    }
    return undefined;
}

function long(length) {
    return `n${length}_`.padEnd(length, "x");
}

function shows(text) {
    const [plain, structured] = [text.includes("in-the-text"), text.includes("in-the-structure")];
    return plain && structured ? "both" : plain ? "text" : structured ? "structured" : "neither";
}

function whole(text, length) {
    for (let mark = 100; mark <= length; mark += 100) if (!text.includes(`@${mark}`)) return false;
    return true;
}

function lastMark(text) {
    return Math.max(0, ...[...text.matchAll(/\.@(\d+)/g)].map(([, mark]) => Number(mark)));
}

// The longest name that is as the server wrote it, alone and with the host's prefix, and the shortest that is not.
function names(turns) {
    const all = turns.flatMap(({ body, tools }) => [JSON.stringify(body), ...tools.map(({ name }) => name)]).join("\n");
    const found = [...all.matchAll(/([A-Za-z0-9_.-]*?)(n(\d+)_x+)(?![x_A-Za-z0-9])/g)];
    // Without a prefix, it is what our own search has said.
    const intact = found.filter(([, prefix, name, length]) => prefix !== "" && name.length === Number(length));
    if (intact.length === 0) return { problem: "no long name is shown" };
    const longest = intact.reduce((one, two) => (two[2].length > one[2].length ? two : one));
    return { longest: longest[2].length, withPrefix: longest[0].length, limited: longest[2].length < 128, prefix: longest[1] };
}

function probe(name, ...more) {
    return { name, command: process.execPath, args: [PROBE, ...more] };
}
