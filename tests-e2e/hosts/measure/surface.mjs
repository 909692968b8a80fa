// Which mode a host was given, by what plugbay listed to it.

import { messages } from "../observed.mjs";

export function surface(log) {
    const names = listed(log);
    if (names.includes("search_tools")) return "search";
    if (names.some((name) => name.endsWith("_suite"))) return "suite";
    if (names.includes("gateway_activate")) return "activate";
    return "all";
}

// The names of the last list that the server gave.
export function listed(log) {
    const lists = messages(log).filter(({ from, message }) => from === "server" && Array.isArray(message.result?.tools));
    return (lists.at(-1)?.message.result.tools ?? []).map(({ name }) => name);
}
