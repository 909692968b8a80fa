// Makes the files of a release, with a script in place of each program, and installs from them.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, join } from "node:path";

import { hostPlatform, platforms, project, top } from "../project.mjs";
import { holds, run, scratch, skip } from "./report.mjs";

const tools = join(process.env.PLUGBAY_E2E_DIR ?? join(top, "target/e2e"), "packaging/node_modules/.bin/mcpb");
if (!existsSync(tools)) skip("mcpb is not installed: tests-e2e/setup.sh packaging");

const folder = scratch();
const out = join(folder, "out");
const server = createServer((request, response) => {
    const file = join(out, basename(request.url));
    response.writeHead(existsSync(file) ? 200 : 404).end(existsSync(file) ? readFileSync(file) : undefined);
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const url = `http://127.0.0.1:${server.address().port}/v1`;

for (const name of Object.keys(platforms)) {
    mkdirSync(join(folder, "built", name), { recursive: true });
    writeFileSync(join(folder, "built", name, "plugbay"), `#!/bin/sh\necho plugbay for ${name}\n`, { mode: 0o755 });
}
make();
const files = readdirSync(out);
holds(`${files.length} files: ${files.join(", ")}`);
allAreThere();
checksumsHold();
archivesAreReproducible();
await installs();
server.close();

function make() {
    const args = ["--binaries", join(folder, "built"), "--out", out, "--url", url, "--owner", "someone"];
    run("node", [join(top, "packaging/release.mjs"), ...args], { cwd: folder });
}

function allAreThere() {
    const { version } = project;
    const expected = Object.entries(platforms).flatMap(([name, { target }]) => {
        return [`plugbay-${target}.tar.gz`, `plugbay-${name}.mcpb`, `plugbay-${name}-${version}.tgz`];
    });
    expected.push(`plugbay-${version}.tgz`, "install.sh", "server.json", "SHA256SUMS");
    assert.deepEqual([...files].sort(), expected.sort());
    const { packages } = JSON.parse(readFileSync(join(out, "server.json"), "utf8"));
    assert.equal(packages.length, 1 + Object.keys(platforms).length);
}

function checksumsHold() {
    const lines = readFileSync(join(out, "SHA256SUMS"), "utf8").trim().split("\n");
    assert.equal(lines.length, files.length - 1);
    for (const line of lines) {
        const [sum, name] = line.split("  ");
        assert.equal(createHash("sha256").update(readFileSync(join(out, name))).digest("hex"), sum, name);
    }
    holds("SHA256SUMS names each file with the right checksum");
}

// With GNU tar, nothing of the machine that packed them is in the archives.
function archivesAreReproducible() {
    if (!run("tar", ["--version"]).includes("GNU")) return;
    const archive = join(out, `plugbay-${platforms[hostPlatform()].target}.tar.gz`);
    const entries = run("tar", ["--utc", "-tvzf", archive]).trim().split("\n").map((line) => line.split(/\s+/));
    assert.deepEqual(entries.map((entry) => entry.at(-1)), ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "plugbay"]);
    for (const [mode, owner, , date] of entries) assert.deepEqual([mode[0], owner, date], ["-", "0/0", "1970-01-01"]);
    holds("the archives have no time and no owner in them");
}

// The installer of the release needs no option.
async function installs() {
    const env = { PATH: process.env.PATH, HOME: join(folder, "home") };
    const child = spawn("sh", [join(out, "install.sh")], { env, stdio: ["ignore", "ignore", "inherit"] });
    assert.equal(await new Promise((closed) => child.on("close", closed)), 0);
    assert.equal(run(join(env.HOME, ".local/bin/plugbay"), []).trim(), `plugbay for ${hostPlatform()}`);
    holds("the installer of the release installs the program for this platform");
}
