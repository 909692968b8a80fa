// What every host's description needs.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export function writeText(file, text) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
}

export function writeJson(file, value) {
    writeText(file, JSON.stringify(value, null, 2));
}

// { NAME: entry } of a list of servers, as most hosts have them.
export function entries(servers, entry) {
    return Object.fromEntries(servers.map((server) => [server.name, entry(server)]));
}

// As npm packages with native programs call it.
export function platform() {
    return `${process.platform}-${process.arch}`;
}
