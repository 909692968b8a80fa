// Makes all files of a release from the programs that were built for its platforms.
//
// Usage: node packaging/release.mjs --binaries FOLDER --out FOLDER --url URL [--owner ACCOUNT] [--sbom FILE]
//
// FOLDER has PLATFORM/plugbay for each platform. URL is where the files will be. Needs `tests-e2e/setup.sh packaging`.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { freshFolder, platforms, top, writeJson } from "./project.mjs";
import { serverJson } from "./server-json.mjs";

const { values: options } = parseArgs({
    options: {
        binaries: { type: "string" },
        out: { type: "string" },
        url: { type: "string" },
        owner: { type: "string" },
        sbom: { type: "string" },
    },
});
if (!options.binaries || !options.out || !options.url) {
    console.error("release.mjs: --binaries, --out and --url are needed");
    process.exit(2);
}
const out = resolve(options.out);
const built = Object.entries(platforms).map(([name, platform]) => {
    return { name, ...platform, file: join(resolve(options.binaries), name, "plugbay") };
});
const work = mkdtempSync(join(tmpdir(), "plugbay-release-"));
process.on("exit", () => rmSync(work, { recursive: true, force: true }));
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

for (const platform of built) archive(platform);
npmPackages();
const bundles = built.map(bundle);
writeJson(join(out, "server.json"), serverJson({ owner: options.owner, release: options.url, bundles }));
installer();
if (options.sbom) copyFileSync(options.sbom, join(out, "plugbay.cdx.json"));
checksums();

// The program with its licenses; equal inputs make equal bytes.
function archive({ target, file }) {
    const folder = join(work, target);
    freshFolder(folder);
    copyFileSync(file, join(folder, "plugbay"));
    chmodSync(join(folder, "plugbay"), 0o755);
    copyFileSync(join(top, "README.md"), join(folder, "README.md"));
    const gnu = run("tar", ["--version"]).includes("GNU");
    const fixed = gnu ? ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"] : [];
    const tar = join(work, `plugbay-${target}.tar`);
    run("tar", [...fixed, "-cf", tar, "-C", folder, "LICENSE-APACHE", "LICENSE-MIT", "README.md", "plugbay"]);
    run("gzip", ["-9", "-n", tar]);
    copyFileSync(`${tar}.gz`, join(out, `plugbay-${target}.tar.gz`));
}

function npmPackages() {
    const folder = join(work, "npm");
    const owner = options.owner ? ["--owner", options.owner] : [];
    const given = built.flatMap(({ name, file }) => ["--binary", `${name}=${file}`]);
    run("node", [join(top, "packaging/npm/build.mjs"), "--all", "--out", folder, ...owner, ...given]);
    for (const name of readdirSync(folder)) run("npm", ["pack", "--silent", "--pack-destination", out, join(folder, name)]);
}

function bundle({ name, file }) {
    const folder = join(work, `${name}.bundle`);
    run("node", [join(top, "packaging/mcpb/build.mjs"), "--out", folder, "--binary", `${name}=${file}`]);
    const tools = join(process.env.PLUGBAY_E2E_DIR ?? join(top, "target/e2e"), "packaging/node_modules/.bin");
    const made = join(out, `plugbay-${name}.mcpb`);
    run(join(tools, "mcpb"), ["pack", folder, made]);
    return made;
}

// The installer of a release knows where its files are.
function installer() {
    const text = readFileSync(join(top, "install.sh"), "utf8");
    const stamped = text.replace(/^release_url=$/m, `release_url=${options.url}`);
    if (stamped === text) throw new Error("install.sh has no line release_url=");
    writeFileSync(join(out, "install.sh"), stamped, { mode: 0o755 });
}

function checksums() {
    const line = (file) => `${createHash("sha256").update(readFileSync(join(out, file))).digest("hex")}  ${basename(file)}\n`;
    writeFileSync(join(out, "SHA256SUMS"), readdirSync(out).sort().map(line).join(""));
}

function run(command, args) {
    return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}
