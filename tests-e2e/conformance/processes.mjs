// Programs that listen on a port of their own choice, each in a process group that is surely ended.

import { spawn } from "node:child_process";

const PATIENCE_MS = 120_000;
const running = new Set();

// Starts a program and waits until it has said on stderr where it listens; gives the address of its endpoint.
export function listen(command, args, options) {
    const child = spawn(command, args, { ...options, detached: true, stdio: ["ignore", "ignore", "pipe"] });
    running.add(child);
    let said = "";
    return new Promise((resolve, reject) => {
        const fail = (what) => reject(new Error(`${command} ${args.join(" ")}: ${what}; it said:\n${said}`));
        const timer = setTimeout(() => fail(`no address after ${PATIENCE_MS} ms`), PATIENCE_MS);
        child.once("error", (error) => fail(error.message));
        child.once("exit", (code, signal) => fail(`ended with ${code ?? signal}`));
        child.stderr.setEncoding("utf8").on("data", (text) => {
            said += text;
            const address = said.match(/127\.0\.0\.1:([1-9]\d*)(?=\D)/);
            if (!address) return;
            clearTimeout(timer);
            resolve(`http://${address[0]}/mcp`);
        });
    });
}

export function endAll() {
    for (const child of running) {
        try {
            process.kill(-child.pid, "SIGKILL");
        } catch {
            // It has ended by itself.
        }
    }
    running.clear();
}
