// Reads what tap.mjs recorded between a host and the server.

import { existsSync, readFileSync } from "node:fs";

// { opening, client, protocol, capabilities, lists, listedAt, relisted }: `relisted` is the milliseconds from each
// `list_changed` to the next `tools/list`, not a number where none came.
export function observed(log) {
    if (!existsSync(log)) return undefined;
    const all = messages(log);
    const asked = all.filter(({ from }) => from === "host");
    const listed = asked.filter(({ message }) => message.method === "tools/list");
    const changes = all.filter(({ from, message }) => from === "server" && message.method === "notifications/tools/list_changed");
    return {
        opening: asked.slice(0, 6).map(({ message }) => message.method),
        ...hello(asked),
        lists: listed.length,
        listedAt: answered(all, listed[0]),
        relisted: changes.map(({ at }) => (listed.find((list) => list.at >= at)?.at ?? NaN) - at),
    };
}

// Every message, with who sent it and when.
export function messages(log) {
    return lines(log).filter(({ from }) => from === "host" || from === "server").map(parsed);
}

// Every line of the record: { at, from, line }, `from` one of start, environment, host, server, stderr, end.
export function lines(log) {
    if (!existsSync(log)) return [];
    return readFileSync(log, "utf8").trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

// When the host had its first list.
function answered(all, request) {
    const answers = all.filter(({ from, message }) => from === "server" && "result" in message);
    return answers.find(({ message }) => message.id === request?.message.id)?.at;
}

function hello(asked) {
    const legacy = asked.find(({ message }) => message.method === "initialize")?.message.params;
    if (legacy) return { client: legacy.clientInfo, protocol: legacy.protocolVersion, capabilities: legacy.capabilities };
    const meta = asked.find(({ message }) => message.params?._meta)?.message.params._meta ?? {};
    const field = (name) => meta[`io.modelcontextprotocol/${name}`];
    return { client: field("clientInfo"), protocol: field("protocolVersion"), capabilities: field("clientCapabilities") };
}

function parsed({ at, from, line }) {
    try {
        return { at, from, message: JSON.parse(line) ?? {} };
    } catch {
        return { at, from, message: {} };
    }
}
