// Finds the program of a host, which setup.sh installs.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const SETUP = fileURLToPath(new URL("../setup.sh", import.meta.url));

// Gives { path: [command, argument...] } or { problem }.
export function installed({ part, program }) {
    const { status, error } = spawnSync("sh", [SETUP, part], { stdio: "inherit" });
    if (error) return { problem: `setup.sh cannot be started: ${error.message}` };
    if (status !== 0) return { problem: `${part} is not installed` };
    const path = program(join(process.env.PLUGBAY_E2E_DIR, "hosts", part));
    const missing = path.find((file) => !existsSync(file));
    return missing ? { problem: `${part} has no ${missing}` } : { path };
}
