// Runs programs to their end, and ends them if they do not.

import { spawn } from "node:child_process";

const PATIENCE_MS = 300_000;
const running = new Set();

// { code, output, errors }: what it wrote to stdout and stderr.
export function run([command, ...first], args, { cwd, env }) {
    const child = spawn(command, [...first, ...args], { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    running.add(child);
    const said = { output: "", errors: "" };
    child.stdout.setEncoding("utf8").on("data", (text) => (said.output += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (said.errors += text));
    return new Promise((done) => {
        const timer = setTimeout(() => end(child), PATIENCE_MS);
        const finish = (code) => {
            clearTimeout(timer);
            end(child);
            done({ code, ...said });
        };
        child.once("error", (error) => finish(error.message));
        child.once("close", (code, signal) => finish(code ?? signal));
    });
}

// Starts a program that goes on; endAll ends it.
export function start([command, ...first], args, { cwd, env, stdio }) {
    const child = spawn(command, [...first, ...args], { cwd, env, detached: true, stdio });
    running.add(child);
    return child;
}

export function end(child) {
    running.delete(child);
    try {
        process.kill(-child.pid, "SIGKILL");
    } catch {
        // It has ended by itself.
    }
}

export function endAll() {
    for (const child of [...running]) end(child);
}
