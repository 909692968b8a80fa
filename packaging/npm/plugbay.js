#!/usr/bin/env node
// Runs the plugbay program that npm installed for this platform.
"use strict";

const { spawn } = require("node:child_process");

const SIGNALS = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"];

const program = find();
const args = process.argv.slice(2);
if (typeof process.execve === "function") {
    // The program takes the place of this process: host and gateway have no Node between them.
    // It is called experimental, and says so on stderr, which is the gateway's log.
    process.removeAllListeners("warning");
    process.execve(program, [program, ...args]);
} else {
    run();
}

// An older Node stays, hands signals on, and ends as the program ends.
function run() {
    const child = spawn(program, args, { stdio: "inherit" });
    child.on("error", (error) => stop(`cannot start ${program}: ${error.message}`));
    for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
    child.on("exit", (code, signal) => {
        if (signal === null) process.exit(code);
        process.removeAllListeners(signal);
        process.kill(process.pid, signal);
    });
}

function find() {
    const platform = `${process.platform}-${process.arch}`;
    const packages = [`@plugbay/${platform}`, `@plugbay/${platform}-musl`];
    const installed = packages.map(resolve).filter(Boolean);
    // An older npm installs both. The one without a suffix needs glibc; the other one is static.
    if (installed.length === 2 && !usesGlibc()) return installed[1];
    return installed[0] ?? stop(missing(platform));
}

function resolve(name) {
    try {
        return require.resolve(`${name}/bin/plugbay`);
    } catch {
        return undefined;
    }
}

function usesGlibc() {
    process.report.excludeNetwork = true;
    return Boolean(process.report.getReport().header.glibcVersionRuntime);
}

function missing(platform) {
    const { optionalDependencies = {} } = require("../package.json");
    if (!(`@plugbay/${platform}` in optionalDependencies)) {
        const known = Object.keys(optionalDependencies).map((name) => name.replace("@plugbay/", ""));
        return `there is no build for ${platform}, only for ${known.join(", ")}`;
    }
    return `the package @plugbay/${platform} is not installed.\n`
        + "Install plugbay again without --omit=optional, and without a lock file that was made on another platform";
}

function stop(message) {
    console.error(`plugbay: ${message}`);
    process.exit(1);
}
