// Packs the npm packages, installs them from their tarballs, and uses plugbay through them.
//
// Usage: node packaging/checks/npm.mjs --binary FILE

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { once } from "node:events";
import { parseArgs } from "node:util";

import { hostPlatform, platforms, project, top } from "../project.mjs";
import { attempt, handshake, holds, home, run, scratch } from "./report.mjs";

const { values: options } = parseArgs({ options: { binary: { type: "string" } } });
const binary = resolve(options.binary);
const folder = scratch();
const env = home(folder, binary);
const platform = hostPlatform();
const launcher = join(folder, "node_modules/.bin/plugbay");

const tarballs = pack();
install(tarballs);
const nodes = [process.execPath, newerNode()].filter(Boolean);
for (const node of nodes) await use(node);
whereNoBinaryIs();
everyPlatform();

function pack() {
    const out = join(folder, "packages");
    run("node", [join(top, "packaging/npm/build.mjs"), "--out", out, "--binary", `${platform}=${binary}`]);
    return ["plugbay", platform].map((name) => {
        const [packed] = Object.values(JSON.parse(run("npm", ["pack", "--json", join(out, name)], { cwd: folder, env })));
        const files = packed.files.map((file) => file.path);
        for (const file of ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "package.json"]) assert(files.includes(file), file);
        holds(`${packed.name}@${packed.version} packed: ${Math.round(packed.size / 1024)} KiB, ${files.length} files`);
        return join(folder, packed.filename);
    });
}

// Offline: the tarballs satisfy each other, and nothing else is needed.
function install(tarballs) {
    writeFileSync(join(folder, "package.json"), '{"private":true}');
    run("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", ...tarballs], { cwd: folder, env });
    const said = run("npx", ["--offline", "plugbay", "--version"], { cwd: folder, env });
    assert.equal(said.trim(), `plugbay ${project.version}`);
    holds(`npx plugbay --version says ${said.trim()}`);
}

// As a host does: MCP over stdio, exit codes, signals.
async function use(node) {
    const version = run(node, ["--version"]).trim();
    const path = { ...env, PATH: [dirname(node), env.PATH].join(delimiter) };
    const { name } = await handshake(node, [launcher, "serve"], path);
    assert.equal(name, "plugbay");
    const wrong = attempt(node, [launcher, "no-such-command"], { env: path });
    const direct = attempt(binary, ["no-such-command"], { env: path });
    assert.deepEqual([wrong.status, wrong.stderr], [direct.status, direct.stderr]);
    for (const signal of ["SIGTERM", "SIGINT"]) {
        assert.deepEqual(await signalled(node, [launcher], signal, path), await signalled(binary, [], signal, path), signal);
    }
    const replaced = await isReplaced(node, path);
    const canReplace = run(node, ["-p", "typeof process.execve === 'function'"]).trim() === "true";
    assert.equal(replaced, canReplace && process.platform === "linux");
    holds(`with node ${version}: MCP, exit codes, signals; ${replaced ? "the program replaces node" : "node stays"}`);
}

// How a gateway ends that gets this signal while it serves.
async function signalled(command, args, signal, env) {
    const child = await serving(command, args, env);
    child.kill(signal);
    return once(child, "exit");
}

// A gateway that has answered a request.
async function serving(command, args, env) {
    const child = spawn(command, [...args, "serve"], { env, stdio: ["pipe", "pipe", "ignore"] });
    child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    await once(child.stdout, "data");
    return child;
}

// Whether the program took the place of the Node that started it. Only Linux tells.
async function isReplaced(node, env) {
    const child = await serving(node, [launcher], env);
    const file = `/proc/${child.pid}/exe`;
    const replaced = existsSync(file) && readlinkSync(file).startsWith(join(realpathSync(folder), "node_modules/@plugbay/"));
    child.stdin.end();
    await once(child, "exit");
    return replaced;
}

// The one that the end-to-end tests install, if ours is older.
function newerNode() {
    const file = join(process.env.PLUGBAY_E2E_DIR ?? join(top, "target/e2e"), "node/node_modules/.bin/node");
    return existsSync(file) ? file : undefined;
}

function whereNoBinaryIs() {
    rmSync(join(folder, "node_modules/@plugbay"), { recursive: true });
    const { status, stderr } = attempt(launcher, ["--version"], { env });
    assert.equal(status, 1);
    assert.match(stderr, new RegExp(`@plugbay/${platform} is not installed`));
    holds("without its platform's package, plugbay says which one is missing");
}

// A release has a package for each platform, and refuses to be made with one missing.
function everyPlatform() {
    const out = join(folder, "all");
    const given = Object.keys(platforms).flatMap((name) => ["--binary", `${name}=${binary}`]);
    const build = (args) => attempt("node", [join(top, "packaging/npm/build.mjs"), "--out", out, "--all", ...args]);
    assert.equal(build(given.slice(2)).status, 2);
    assert.equal(build(given).status, 0);
    const { optionalDependencies } = JSON.parse(readFileSync(join(out, "plugbay/package.json"), "utf8"));
    for (const name of Object.keys(platforms)) {
        const made = JSON.parse(readFileSync(join(out, name, "package.json"), "utf8"));
        const { os, cpu, libc } = platforms[name];
        assert.deepEqual([made.os, made.cpu, made.libc], [[os], [cpu], libc && [libc]]);
        assert.equal(optionalDependencies[made.name], made.version);
    }
    holds(`a release has ${Object.keys(platforms).length} platforms`);
}
