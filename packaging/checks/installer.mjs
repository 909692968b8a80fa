// Runs install.sh against a local server with a made-up release.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { delimiter, join } from "node:path";

import { hostPlatform, platforms, top } from "../project.mjs";
import { holds, run, scratch } from "./report.mjs";

const folder = scratch();
const files = new Map();
const server = createServer((request, response) => {
    const content = files.get(request.url);
    response.writeHead(content ? 200 : 404).end(content);
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const base = `http://127.0.0.1:${server.address().port}/v1`;
const archive = `plugbay-${platforms[hostPlatform()].target}.tar.gz`;
release("plugbay 9.9.9");

const shells = ["sh", "dash", "bash"].filter(exists).map((shell) => [shell]);
if (exists("busybox")) shells.push(["busybox", "sh"]);
for (const shell of shells) await installs(shell);
await replaces();
await otherDownloaders();
await failures();
await detects();
server.close();

async function installs(shell) {
    const to = join(folder, `bin of ${shell.join("-")}`);
    const { status, stdout, stderr } = await install(["--base-url", `${base}/`, "--to", to], { shell });
    assert.equal(status, 0, stderr);
    assert.equal(run(join(to, "plugbay"), []), "plugbay 9.9.9\n");
    assert.deepEqual(readdirSync(to), ["plugbay"]);
    assert.match(stdout, /is not on your PATH/);
    assert(stdout.includes(`to uninstall: rm '${to}/plugbay'`), stdout);
    holds(`installs with ${shell.join(" ")}`);
}

async function replaces() {
    const bin = join(folder, "home/.local/bin");
    const PATH = [bin, process.env.PATH].join(delimiter);
    assert.equal((await install([], { PLUGBAY_BASE_URL: base, PATH })).status, 0);
    release("plugbay 10.0.0");
    const { stdout } = await install([], { PLUGBAY_BASE_URL: base, PATH });
    assert.match(stdout, /installed plugbay 10\.0\.0 as .*\n.*try: plugbay demo/);
    holds("installs into ~/.local/bin by default, over an older version");
}

// With only these programs on the PATH.
async function otherDownloaders() {
    const basics = ["sh", "awk", "cat", "chmod", "getconf", "gzip", "mkdir", "mktemp", "mv", "rm", "sed", "tar", "uname"];
    const to = join(folder, "bin by wget");
    if (exists("wget")) {
        const PATH = onlyThese([...basics, "wget", "sha256sum"]);
        const { status, stderr } = await install(["--base-url", base, "--to", to], { PATH });
        assert.equal(status, 0, stderr);
        assert.equal(run(join(to, "plugbay"), []), "plugbay 10.0.0\n");
        holds("takes wget where curl is missing");
    }
    await fails(["--base-url", base], /needs curl or wget/, { PATH: onlyThese([...basics, "sha256sum"]) });
    await fails(["--base-url", base], /needs sha256sum or shasum/, { PATH: onlyThese([...basics, "curl"]) });
    if (exists("shasum")) {
        const PATH = onlyThese([...basics, "curl", "shasum", "perl"]);
        assert.equal((await install(["--base-url", base, "--to", to], { PATH })).status, 0);
    }
}

async function failures() {
    await fails([], /which release\?/);
    await fails(["--base-url", "http://downloads.example/v1"], /not an https/);
    await fails(["--base-url", base, "--frobnicate"], /unknown option/);
    await fails(["--base-url"], /^install.sh: --base-url needs a value\n$/);
    await fails(["--base-url", `${base}/none`], /cannot download/);
    await fails(["--base-url", base, "--target", "riscv64gc-unknown-linux-gnu"], /cannot download/);
    const good = files.get(`/v1/${archive}`);
    files.set(`/v1/${archive}`, Buffer.concat([good, Buffer.from("x")]));
    await fails(["--base-url", base], /checksum of .* is wrong; nothing was installed/);
    files.set(`/v1/${archive}`, good);
    files.set("/v1/SHA256SUMS", `${"0".repeat(64)}  plugbay-other.tar.gz\n`);
    await fails(["--base-url", base], /SHA256SUMS does not name/);
    release("", "exit 1");
    await fails(["--base-url", base], /does not run here/);
    holds("installs nothing if the checksum, the address, the platform or the program is wrong");
}

// What it would download, by what `uname` and `getconf` say.
async function detects() {
    const cases = [
        ["Linux", "x86_64", "glibc 2.36", "x86_64-unknown-linux-gnu"],
        ["Linux", "aarch64", "glibc 2.35", "aarch64-unknown-linux-gnu"],
        ["Linux", "x86_64", "glibc 2.31", "x86_64-unknown-linux-musl"],
        ["Linux", "aarch64", undefined, "aarch64-unknown-linux-musl"],
        ["Darwin", "arm64", undefined, "aarch64-apple-darwin"],
        ["Darwin", "x86_64", undefined, "x86_64-apple-darwin"],
    ];
    for (const [system, machine, glibc, target] of cases) {
        const PATH = pretend(system, machine, glibc);
        const { status, stdout } = await install(["--base-url", base, "--dry-run"], { PATH });
        assert(status === 0 && stdout.includes(`/plugbay-${target}.tar.gz `), `${system} ${machine}: ${stdout}`);
    }
    const known = new Set(Object.values(platforms).map(({ target }) => target));
    assert(cases.every(([, , , target]) => known.has(target)));
    await fails(["--base-url", base], /no build for FreeBSD on x86_64/, { PATH: pretend("FreeBSD", "amd64") });
    await fails(["--base-url", base], /no build for Linux on riscv64/, { PATH: pretend("Linux", "riscv64") });
    holds(`tells ${cases.length} platforms apart`);
}

function release(says, script = `echo '${says}'`) {
    const place = join(folder, "release");
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, "plugbay"), `#!/bin/sh\n${script}\n`);
    chmodSync(join(place, "plugbay"), 0o755);
    run("tar", ["-czf", join(folder, archive), "-C", place, "plugbay"]);
    const content = readFileSync(join(folder, archive));
    files.set(`/v1/${archive}`, content);
    files.set("/v1/SHA256SUMS", `${createHash("sha256").update(content).digest("hex")}  ${archive}\n`);
}

async function fails(args, reason, env = {}) {
    const { status, stderr } = await install(args, { PLUGBAY_INSTALL_DIR: join(folder, "never"), ...env });
    assert.equal(status, 1, stderr);
    assert.match(stderr, reason);
    assert(!existsSync(join(folder, "never/plugbay")) && !existsSync(join(folder, "never/.plugbay.new")));
}

// Not synchronous: the server must answer meanwhile.
async function install(args, { shell = ["sh"], ...env } = {}) {
    const [command, ...first] = shell;
    const all = { PATH: process.env.PATH, HOME: join(folder, "home"), ...env };
    const path = spawnSync("sh", ["-c", `command -v ${command}`], { encoding: "utf8" }).stdout.trim();
    const child = spawn(path, [...first, join(top, "install.sh"), ...args], { env: all, stdio: ["ignore", "pipe", "pipe"] });
    const said = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) child[name].on("data", (data) => (said[name] += data));
    const status = await new Promise((closed) => child.on("close", closed));
    return { status, ...said };
}

function onlyThese(programs) {
    const place = join(folder, `path ${programs.join(" ")}`.slice(0, 120) + programs.length);
    mkdirSync(place, { recursive: true });
    for (const program of programs) {
        const path = spawnSync("sh", ["-c", `command -v ${program}`], { encoding: "utf8" }).stdout.trim();
        if (path && !existsSync(join(place, program))) symlinkSync(path, join(place, program));
    }
    return place;
}

function pretend(system, machine, glibc) {
    const place = join(folder, `${system} ${machine} ${glibc}`);
    mkdirSync(place, { recursive: true });
    const script = (name, text) => writeFileSync(join(place, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    script("uname", `case $1 in -s) echo ${system} ;; -m) echo ${machine} ;; esac`);
    script("getconf", glibc ? `echo '${glibc}'` : "exit 1");
    script("sysctl", "exit 1");
    return [place, process.env.PATH].join(delimiter);
}

function exists(program) {
    return spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
}
