// Has Claude Code look at the plugin that plugbay writes. Usage: see ../plugin.sh

import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { parseArgs } from "node:util";

import claudeCode from "./host/claude-code.mjs";
import { writeJson } from "./host/files.mjs";
import { installed } from "./installed.mjs";
import { startModel } from "./model-stub.mjs";

const { values: options } = parseArgs({ options: { plugbay: { type: "string", default: process.env.PLUGBAY_BIN } } });
const plugbay = resolve(options.plugbay);

const { path, problem } = installed(claudeCode);
if (problem) {
    console.log(`claude-code: skipped, ${problem}`);
    process.exit(3);
}

const home = mkdtempSync(join(tmpdir(), "plugbay-plugin-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));
const plugin = join(home, "plugin");
mkdirSync(join(home, "bin"));
symlinkSync(plugbay, join(home, "bin/plugbay"));
writeJson(join(home, ".config/plugbay/config.jsonc"), {
    mode: "activate",
    mcpServers: { calc: { command: plugbay, args: ["__sample", "calc"] } },
});
const model = await startModel({ next: () => ({ say: "done" }) });
const env = {
    ...claudeCode.launch({ home, servers: [], model: model.url }).env,
    PATH: [join(home, "bin"), process.env.PATH].join(delimiter),
    HOME: home,
    TERM: "dumb",
};

check("plugbay plugin", spawnSync(plugbay, ["plugin", plugin], { env, encoding: "utf8" }));
check("plugin validate", spawnSync(path[0], ["plugin", "validate", plugin, "--profile", "directory"], { env, encoding: "utf8" }));

// What its model is offered when the skill is asked for.
await new Promise((over) => {
    const claude = spawn(path[0], ["-p", "/plugbay status", "--plugin-dir", plugin], { cwd: home, env, stdio: "ignore" });
    claude.on("exit", over);
});
await model.stop();
const offered = new Set(model.requests.flatMap(({ body }) => body.tools ?? []).map(({ name }) => name));
const skill = readFileSync(join(plugin, "skills/plugbay/SKILL.md"), "utf8");
const allowed = [...skill.matchAll(/^ {2}- (mcp__\S+__gateway_\w+)$/gm)].map(([, name]) => name);
const strange = allowed.filter((name) => !offered.has(name));
if (allowed.length !== 3 || strange.length > 0) {
    fail(`allowed are ${allowed.join(", ")}; offered are ${[...offered].join(", ")}`);
}
console.log(`claude-code: valid, and ${allowed.join(", ")} are what it calls our tools`);
process.exit(0);

function check(what, { status, stdout, stderr }) {
    if (status !== 0) fail(`${what}: exit code ${status}\n${stdout}${stderr}`);
}

function fail(why) {
    console.log(`claude-code: ${why}`);
    process.exit(1);
}
