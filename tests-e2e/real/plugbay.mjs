// The program under test: where it is, what it can do, and how it is started.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

import { Client } from "./client.mjs";
import { surroundings } from "./servers.mjs";

// The newest that is built: figures are worth most of a release build.
export function plugbay() {
    const target = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL("../../target", import.meta.url));
    const built = ["release", "debug"].map((profile) => join(target, profile, "plugbay"));
    return process.env.PLUGBAY_BIN ?? built.find(existsSync) ?? built[0];
}

// Whether this program has a daemon: older ones always serve alone, and do not know the option.
export function hasDaemon(program) {
    return execFileSync(program, ["serve", "--help"], { encoding: "utf8" }).includes("--no-daemon");
}

// `plugbay serve` as a process of its own that holds its servers itself.
export function serveAlone(program, file, { cwd, home }) {
    const alone = hasDaemon(program) ? ["--no-daemon"] : [];
    return new Client(program, ["--config", file, "serve", ...alone], { cwd, env: homeOnly(home) });
}

// `plugbay serve` as a window starts it: a bridge to the daemon of this home.
export function serveShared(program, file, { cwd, home }) {
    return new Client(program, ["--config", file, "serve"], { cwd, env: homeOnly(home) });
}

export function stopDaemon(program, home) {
    execFileSync(program, ["daemon", "stop"], { env: homeOnly(home), stdio: "ignore" });
}

// A home of its own, so that nothing of the user's is read or written.
export function homeOnly(home) {
    const folders = { XDG_CONFIG_HOME: "config", XDG_CACHE_HOME: "cache", XDG_STATE_HOME: "state", XDG_DATA_HOME: "data", XDG_RUNTIME_DIR: "run" };
    const below = Object.entries(folders).map(([key, folder]) => [key, join(home, folder)]);
    return { ...surroundings(home), ...Object.fromEntries(below) };
}
