// What was measured, as tables.

import { HOSTS } from "../all.mjs";
import { MODES } from "./ground.mjs";
import { TURNS } from "./part/tokens.mjs";

// A host may be this much more expensive with `auto` than with the best mode.
const NEAR_PERCENT = 5;

export function report({ date, plugbay, hosts }) {
    const all = HOSTS.map(({ name }) => [name, hosts[name]]).filter(([, host]) => host && !host.skipped);
    const skipped = Object.entries(hosts).filter(([, host]) => host.skipped);
    const parts = [
        `Measured on ${date} with ${plugbay}.`,
        ...skipped.map(([name, { skipped: why }]) => `Skipped: ${name}, ${why}.`),
        section(all, "opening", "How hosts open, and what they see of tools", OPENING),
        section(all, "tokens", "Tokens that MCP adds to the first request", FIRST),
        ...TURNS.map((turns) => section(all, "tokens", `Tokens of a conversation of ${turns} turns (requests in brackets)`, conversation(turns))),
        section(all, "tokens", "How far `auto`, told where it can be, is from the best mode, in per cent (billed: with a prompt cache)", DISTANCE),
        section(all, "limits", "What hosts show", LIMITS),
        section(all, "crash", "What happens to a call; directly / through plugbay", EVENTS),
    ];
    return `${parts.filter(Boolean).join("\n\n")}\n`;
}

function section(hosts, part, title, columns) {
    const rows = hosts.filter(([, host]) => host[part] && Object.keys(host[part]).length > 0);
    if (rows.length === 0) return undefined;
    const cells = rows.map(([name, host]) => [name, ...Object.values(columns).map((column) => text(column(host)))]);
    return [`### ${title}`, "", line(["host", ...Object.keys(columns)]), line(["", ...Object.keys(columns)].map(() => "---")), ...cells.map(line)].join("\n");
}

const OPENING = {
    version: ({ version }) => version,
    "`clientInfo.name`": ({ opening }) => opening.client?.name,
    "opens, to plugbay": ({ opening }) => `${opening.era} ${opening.protocol ?? ""}${opening.listens ? ", listens" : ""}`,
    "lists again": ({ changes }) => changes?.direct?.listsAgain,
    declares: ({ opening }) => opening.capabilities?.join(", "),
    "environment that plugbay sees": ({ opening }) => `${opening.environment?.count} variables${list(opening.environment?.seen)}`,
    "defers from": ({ deferral }) => (deferral?.codeMode ? "code mode" : (deferral?.defersFrom ?? (deferral?.shownOfMany ? "never" : undefined))),
    "`auto` gives": ({ opening }) => opening.auto,
};

const FIRST = {
    "without MCP": ({ tokens }) => tokens.without,
    ...byMode(["direct", "auto", "told", ...MODES], ({ adds }) => adds),
    "`auto` is": ({ tokens }) => tokens.modes?.auto?.given,
};

function conversation(turns) {
    const cost = ({ conversations }) => conversations?.[turns] && `${text(conversations[turns].tokens)} (${conversations[turns].requests})`;
    return { ...byMode(["direct", "auto", "told", ...MODES], cost), best: ({ tokens }) => tokens.comparison?.[turns]?.read?.mode };
}

const DISTANCE = Object.fromEntries(
    ["read", "billed"].flatMap((field) =>
        TURNS.map((turns) => [
            `${turns} turns${field === "billed" ? ", billed" : ""}`,
            ({ tokens }) => {
                const { mode, autoBehindPercent: behind } = tokens.comparison?.[turns]?.[field] ?? {};
                return behind === undefined ? undefined : `${behind > NEAR_PERCENT ? `**${behind}**` : behind} (${mode})`;
            },
        ]),
    ),
);

const LIMITS = {
    "longest name, with prefix": ({ limits }) => limits.names && (limits.names.limited ? `${limits.names.longest}, ${limits.names.withPrefix}` : "none found"),
    "text + structured": ({ limits }) => limits.direct?.shows,
    "result whole up to, direct / through": ({ limits }) => pair(limits, ({ wholeUpTo, cutAt }) => `${wholeUpTo} K${cutAt ? ` (${cutAt} K cut)` : ""}`),
    "instructions, characters": ({ limits }) => pair(limits, ({ instructions }) => instructions),
    "activation: next turn, by search, by call-through, of": ({ activation }) =>
        activation && [activation.next, activation.found, activation.through, activation.rounds].join(", "),
};

const EVENTS = {
    "list change seen, result at once": ({ changes }) => pair(changes, (seen) => seen[0]),
    "300 ms later": ({ changes }) => pair(changes, (seen) => seen[300]),
    "after an interrupt": ({ interrupt }) => pair(interrupt, (told) => told),
    "call after a crash": ({ crash }) => pair(crash, ({ next }) => next),
    "results are values in its code": ({ code }) => (code?.codeMode ? code.value : undefined),
};

function byMode(modes, cell) {
    return Object.fromEntries(modes.map((mode) => [mode, ({ tokens }) => tokens.modes?.[mode] && cell(tokens.modes[mode])]));
}

function pair(found, pick) {
    const one = (side) => text(found?.[side] === undefined ? undefined : pick(found[side]));
    return found && `${one("direct")} / ${one("through")}`;
}

function list(names) {
    return names?.length > 0 ? `, ${names.join(", ")}` : "";
}

function text(value) {
    if (value === undefined || value === null) return "–";
    if (typeof value === "boolean") return value ? "yes" : "no";
    return typeof value === "number" ? value.toLocaleString("en") : value;
}

function line(cells) {
    return `| ${cells.join(" | ")} |`;
}
