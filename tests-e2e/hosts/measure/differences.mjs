// What was measured beside what plugbay's profiles say.

import { readFileSync } from "node:fs";

const FILE = new URL("../../../crates/plugbay-core/src/profile/profiles.json", import.meta.url);
// A request without MCP may grow or shrink by so much before the estimate is wrong.
const TOLERANCE = 0.1;
// The instructions of the probe.
const LONGEST_INSTRUCTIONS = 12_000;

const PROFILES = JSON.parse(readFileSync(FILE, "utf8"));

// A line for each thing that is not as the profile says.
export function differences({ hosts }) {
    return Object.entries(hosts).flatMap(([name, measured]) => {
        if (measured.skipped) return [];
        const profile = profileCalled(measured.profile);
        return CHECKS.flatMap((check) => check(measured, profile)).map((text) => `${name} (${measured.profile}): ${text}`);
    });
}

// A variant has everything of its host that it does not change; null takes a field away.
function profileCalled(name) {
    const base = PROFILES.find((profile) => profile.name === name.split("/")[0]) ?? {};
    const own = PROFILES.find((profile) => profile.name === name) ?? {};
    return Object.fromEntries(Object.entries({ ...base, ...own }).filter(([, value]) => value !== null));
}

const CHECKS = [
    ({ opening }, { clients = [] }) => {
        const name = opening?.client?.name;
        const fits = (pattern) => (pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern);
        return name && !clients.some(fits) ? [`it calls itself ${name}; the profile has ${clients.join(", ")}`] : [];
    },
    ({ opening }, { era }) => differs("era", era && opening?.era, era),
    ({ changes }, { listsAgain = false }) => differs("listsAgain", changes?.direct?.listsAgain, listsAgain),
    ({ deferral }, { codeMode = false }) => differs("codeMode", deferral?.codeMode, codeMode),
    // In a script nothing is deferred; the tools are just not described.
    ({ deferral }, { defersFrom, codeMode }) =>
        deferral?.shownOfMany === undefined || codeMode ? [] : differs("defersFrom", deferral.defersFrom ?? "never", defersFrom ?? "never"),
    ({ limits }, { nameLimit }) => {
        const { longest, limited } = limits?.names ?? {};
        if (!longest) return [];
        if (limited) return differs("nameLimit", longest, nameLimit);
        return nameLimit > longest ? [`nameLimit: ${nameLimit}, but ${longest} was the longest tried`] : [];
    },
    ({ limits }, { instructionsLimit = LONGEST_INSTRUCTIONS }) => {
        const shown = limits?.direct?.instructions;
        const lost = shown !== undefined && instructionsLimit > shown + 100;
        return lost ? [`instructionsLimit: measured ${shown}, the profile has ${instructionsLimit}`] : [];
    },
    ({ limits }, { resultLimit }) => {
        const { wholeUpTo, cutAt = Infinity } = limits?.direct ?? {};
        const fits = resultLimit >= wholeUpTo * 1000 && resultLimit <= cutAt * 1000;
        return wholeUpTo && !fits ? [`resultLimit: whole at ${wholeUpTo} K, cut at ${cutAt} K; the profile has ${resultLimit}`] : [];
    },
    ({ limits }, { shows = "unknown" }) => differs("shows", limits?.direct?.shows, shows),
    ({ tokens }, { requestTokens }) => {
        const without = tokens?.without;
        const near = Math.abs(without - requestTokens) <= requestTokens * TOLERANCE;
        return without && !near ? [`requestTokens: measured ${without}, the profile has ${requestTokens}`] : [];
    },
    ({ activation }, { listsAgain }) =>
        listsAgain && activation?.rounds > activation?.next + activation?.found
            ? [`activation: in ${activation.next} of ${activation.rounds} rounds the tools were there in the next turn`]
            : [],
];

function differs(field, measured, profile) {
    return measured === undefined || measured === profile ? [] : [`${field}: measured ${measured}, the profile has ${profile}`];
}
