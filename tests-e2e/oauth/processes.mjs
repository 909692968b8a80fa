// Child processes, each in a process group that is surely ended, with all that they wrote.

import { spawn } from "node:child_process";

const running = new Set();

export class Process {
    stdout = "";
    stderr = "";
    #child;
    #changed = new Set();

    constructor(command, args, options = {}) {
        this.name = [command.split("/").pop(), ...args].join(" ");
        this.#child = spawn(command, args, { ...options, detached: true, stdio: "pipe" });
        running.add(this);
        this.#child.stdin.on("error", () => {});
        for (const stream of ["stdout", "stderr"]) {
            this.#child[stream].setEncoding("utf8").on("data", (text) => {
                this[stream] += text;
                for (const look of this.#changed) look();
            });
        }
        this.ended = new Promise((resolve) => {
            this.#child.once("error", (error) => resolve({ code: -1, problem: error.message }));
            this.#child.once("close", (code, signal) => resolve({ code, signal }));
        }).then((how) => {
            running.delete(this);
            this.how = how;
            for (const look of this.#changed) look();
            return { ...how, stdout: this.stdout, stderr: this.stderr };
        });
    }

    get pid() {
        return this.#child.pid;
    }

    write(text) {
        this.#child.stdin.write(text);
    }

    endInput() {
        this.#child.stdin.end();
    }

    // The first match in what it has written; a failure if it ends before.
    until(pattern, patience, stream = "stdout") {
        return this.#within(patience, `/${pattern.source}/ on ${stream}`, (resolve, reject) => {
            const look = () => {
                const found = this[stream].match(pattern);
                if (found) resolve(found);
                else if (this.how) reject(this.#failure(`ended with ${this.how.code ?? this.how.signal}`));
            };
            this.#changed.add(look);
            look();
        });
    }

    // The exit code and all output.
    end(patience) {
        return this.#within(patience, "its end", (resolve) => this.ended.then(resolve));
    }

    kill(signal = "SIGKILL") {
        try {
            process.kill(-this.#child.pid, signal);
        } catch {
            // It has ended by itself, or never started.
        }
    }

    #within(patience, what, wait) {
        return new Promise((resolve, reject) => {
            const timer = setTimeout(() => reject(this.#failure(`no sign of ${what} after ${patience} ms`)), patience);
            wait(
                (value) => (clearTimeout(timer), resolve(value)),
                (error) => (clearTimeout(timer), reject(error)),
            );
        });
    }

    #failure(what) {
        return new Error(`${this.name}: ${what}\n${this.stdout}${this.stderr}`);
    }
}

export function killAll() {
    for (const process of running) process.kill();
}
