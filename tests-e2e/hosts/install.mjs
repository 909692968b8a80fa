// Brings a pinned host from npm, once.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// Gives { path: [command, argument...] } or { problem }. Install scripts are not run: we start the native programs themselves.
export function installed(host, folder) {
    const stamp = join(folder, "installed");
    if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== host.install) {
        const problem = install(host.install, folder);
        if (problem) return { problem };
        writeFileSync(stamp, host.install);
    }
    const path = host.program(folder);
    const missing = path.find((part) => !existsSync(part));
    return missing ? { problem: `${host.install} has no ${missing}` } : { path };
}

function install(what, folder) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
    const args = ["install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", what];
    const { status, stderr, error } = spawnSync("npm", args, { cwd: folder, encoding: "utf8" });
    if (error) return `npm cannot be started: ${error.message}`;
    return status === 0 ? undefined : `npm install ${what} failed: ${stderr.trim().slice(0, 300)}`;
}
