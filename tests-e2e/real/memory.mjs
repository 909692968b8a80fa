// What the processes of a run are and how much memory they take, from /proc. Linux only.

import { readFileSync, readdirSync } from "node:fs";

// All processes that were started with this word in their environment, such as a home of their own.
export function processesWith(word) {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return pids.filter((pid) => read(pid, "environ").includes(word)).map((pid) => ({ pid: Number(pid), argv: argv(pid), ...memory(pid) }));
}

// Bytes: `pss` shares what several processes map, `rss` counts it for each; `dirty` is the process's own alone.
function memory(pid) {
    const rollup = read(pid, "smaps_rollup");
    const status = read(pid, "status");
    const field = (text, name) => 1024 * Number(text.match(new RegExp(`^${name}:\\s+(\\d+) kB`, "m"))?.[1] ?? 0);
    return { pss: field(rollup, "Pss"), rss: field(rollup, "Rss"), dirty: field(rollup, "Private_Dirty"), anon: field(status, "RssAnon") };
}

function argv(pid) {
    return read(pid, "cmdline").split("\0").slice(0, -1);
}

// A process may have ended since it was found, or belong to someone else.
function read(pid, file) {
    try {
        return readFileSync(`/proc/${pid}/${file}`, "latin1");
    } catch {
        return "";
    }
}

export function megabytes(bytes) {
    return (bytes / 1e6).toFixed(bytes < 1e8 ? 1 : 0);
}

export function sum(values) {
    return values.reduce((total, value) => total + value, 0);
}
