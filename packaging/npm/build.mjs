// Makes the npm packages: `plugbay`, and one for each platform with the program for it.
//
// Usage: node packaging/npm/build.mjs --out FOLDER --binary PLATFORM=FILE... [--owner ACCOUNT] [--all]
//
// `plugbay` depends on the platforms that are given. With --all, each platform of a release must be.

import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { serverName } from "../server-json.mjs";
import { binaries, freshFolder, platforms, project, top, writeJson } from "../project.mjs";

const { values: options } = parseArgs({
    options: {
        out: { type: "string" },
        binary: { type: "string", multiple: true, default: [] },
        owner: { type: "string" },
        all: { type: "boolean", default: false },
    },
});
const built = binaries(options.binary);
const missing = Object.keys(platforms).filter((name) => !built.some((binary) => binary.name === name));
if (!options.out || built.length === 0 || (options.all && missing.length > 0)) {
    const why = options.all ? `no --binary for ${missing.join(", ")}` : "--out and --binary are needed";
    console.error(`build.mjs: ${why}`);
    process.exit(2);
}

const { name, version, description, license, author, keywords } = project;
const common = { version, description, license, author };
for (const binary of built) platformPackage(binary);
mainPackage();

function mainPackage() {
    const folder = join(options.out, name);
    freshFolder(folder);
    mkdirSync(join(folder, "bin"));
    copyFileSync(join(top, "packaging/npm/plugbay.js"), join(folder, "bin/plugbay.js"));
    chmodSync(join(folder, "bin/plugbay.js"), 0o755);
    copyFileSync(join(top, "packaging/npm/README.md"), join(folder, "README.md"));
    writeJson(join(folder, "package.json"), {
        name,
        ...common,
        keywords,
        mcpName: serverName(options.owner),
        bin: { plugbay: "bin/plugbay.js" },
        files: ["bin", "LICENSE-*"],
        engines: { node: ">=18" },
        optionalDependencies: Object.fromEntries(built.map((binary) => [scoped(binary), version])),
    });
}

function platformPackage(binary) {
    const folder = join(options.out, binary.name);
    freshFolder(folder);
    mkdirSync(join(folder, "bin"));
    copyFileSync(binary.file, join(folder, "bin/plugbay"));
    chmodSync(join(folder, "bin/plugbay"), 0o755);
    writeFileSync(join(folder, "README.md"), `# ${scoped(binary)}\n\nThe program of plugbay for ${binary.target}.\n`);
    writeJson(join(folder, "package.json"), {
        name: scoped(binary),
        ...common,
        files: ["bin", "LICENSE-*"],
        os: [binary.os],
        cpu: [binary.cpu],
        ...(binary.libc && { libc: [binary.libc] }),
        // A scoped package is private unless it says otherwise.
        publishConfig: { access: "public" },
        preferUnplugged: true,
    });
}

function scoped(binary) {
    return `@${name}/${binary.name}`;
}
