// Finds the program of a host, which setup.sh installs.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const SETUP = fileURLToPath(new URL("../setup.sh", import.meta.url));

// Gives { path: [command, argument...], version } or { problem }; with "@latest", of the version that npm has today.
export function installed({ part, program }, which = "") {
    const { status, error } = spawnSync("sh", [SETUP, part + which], { stdio: "inherit" });
    if (error) return { problem: `setup.sh cannot be started: ${error.message}` };
    if (status !== 0) return { problem: `${part} is not installed` };
    const folder = join(process.env.PLUGBAY_E2E_DIR, "hosts", part + which);
    const path = program(folder);
    const missing = path.find((file) => !existsSync(file));
    if (missing) return { problem: `${part} has no ${missing}` };
    const stamp = readFileSync(join(folder, "node_modules/installed"), "utf8");
    return { path, version: stamp.trim().split("@").at(-1) };
}
