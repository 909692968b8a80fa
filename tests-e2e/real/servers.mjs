// The real servers of `forty.json`: how each is started where setup.sh installed it.

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const LIST = new URL("../forty.json", import.meta.url);

// These servers would ask the network for a newer version of themselves, or report their use.
const QUIET = {
    DO_NOT_TRACK: "1",
    NO_UPDATE_NOTIFIER: "1",
    FASTMCP_CHECK_FOR_UPDATES: "off",
    FASTMCP_SHOW_SERVER_BANNER: "false",
};

// Each server's name, command, arguments and environment; a server that keeps files keeps them below `scratch`.
export function servers(scratch, file = LIST) {
    return JSON.parse(readFileSync(file, "utf8")).map((entry) => {
        const folder = join(scratch, entry.name);
        mkdirSync(folder, { recursive: true });
        const fill = (text) => text.replaceAll("{folder}", folder);
        const env = Object.entries({ ...QUIET, ...entry.env }).map(([key, value]) => [key, fill(value)]);
        return { name: entry.name, registry: entry.registry, command: program(entry), args: entry.args.map(fill), env: Object.fromEntries(env) };
    });
}

// A configuration of plugbay with these servers; `own` gives the settings under each one's `plugbay` key.
export function configuration(servers, settings = {}, own = () => undefined) {
    const entries = servers.map((server) => {
        const { name, command, args, env } = server;
        return [name, { command, args, env, plugbay: own(server) }];
    });
    return { ...settings, mcpServers: Object.fromEntries(entries) };
}

// What a server started by hand sees of our environment: as much as under plugbay, which passes these on.
export function surroundings(home) {
    const { PATH, LANG, USER } = process.env;
    return { PATH, LANG: LANG ?? "C.UTF-8", USER: USER ?? "user", HOME: home, TMPDIR: process.env.TMPDIR ?? "/tmp" };
}

function program({ registry, package: name, command }) {
    const installed = process.env.PLUGBAY_E2E_DIR;
    if (registry === "npm") return join(installed, "forty/node_modules/.bin", command);
    return join(installed, "forty-py", name, "bin", command);
}
