// What every package says about plugbay, and the platforms that a release is built for.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const top = join(dirname(fileURLToPath(import.meta.url)), "..");

const cargo = readFileSync(join(top, "Cargo.toml"), "utf8");
const workspace = cargo.slice(cargo.indexOf("[workspace.package]"), cargo.indexOf("[workspace.dependencies]"));

export const project = {
    name: "plugbay",
    version: field("version"),
    description: field("description"),
    license: field("license"),
    author: field("authors").replace(/^\["|"\]$/g, ""),
    keywords: ["mcp", "model-context-protocol", "gateway", "proxy", "agent"],
};

// The names are those of npm: process.platform and process.arch.
export const platforms = {
    "linux-x64": { target: "x86_64-unknown-linux-gnu", os: "linux", cpu: "x64", libc: "glibc" },
    "linux-x64-musl": { target: "x86_64-unknown-linux-musl", os: "linux", cpu: "x64", libc: "musl" },
    "linux-arm64": { target: "aarch64-unknown-linux-gnu", os: "linux", cpu: "arm64", libc: "glibc" },
    "linux-arm64-musl": { target: "aarch64-unknown-linux-musl", os: "linux", cpu: "arm64", libc: "musl" },
    "darwin-x64": { target: "x86_64-apple-darwin", os: "darwin", cpu: "x64" },
    "darwin-arm64": { target: "aarch64-apple-darwin", os: "darwin", cpu: "arm64" },
};

// The platform whose binary runs here: the one that a build on this machine makes.
export function hostPlatform() {
    const name = `${process.platform}-${process.arch}`;
    const glibc = process.report.getReport().header.glibcVersionRuntime;
    return process.platform === "linux" && !glibc ? `${name}-musl` : name;
}

// Reads `PLATFORM=FILE` options.
export function binaries(options) {
    return options.map((option) => {
        const [, name, file] = /^([^=]+)=(.+)$/.exec(option) ?? [];
        if (!(name in platforms)) {
            throw new Error(`${option}: expected PLATFORM=FILE with one of ${Object.keys(platforms).join(", ")}`);
        }
        return { name, file, ...platforms[name] };
    });
}

// An empty folder, with the licenses in it.
export function freshFolder(folder) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    for (const name of ["LICENSE-MIT", "LICENSE-APACHE"]) copyFileSync(join(top, name), join(folder, name));
}

export function writeJson(file, value) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

function field(name) {
    const found = new RegExp(`^${name} = (.+)$`, "m").exec(workspace);
    if (!found) throw new Error(`Cargo.toml has no ${name} under [workspace.package]`);
    return found[1].replace(/^"|"$/g, "");
}
