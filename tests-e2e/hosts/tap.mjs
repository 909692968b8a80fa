// Stands between a host and a server, changes nothing, and writes every message down with the time, and what the server
// writes to stderr, the environment that the host gave it, and when the host ended it.
// Usage: node tap.mjs LOG COMMAND [ARGUMENT...]

import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";

const [log, command, ...args] = process.argv.slice(2);
const server = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });

note("start", JSON.stringify(process.argv.slice(3)));
note("environment", JSON.stringify(process.env));
join("host", process.stdin, server.stdin);
join("server", server.stdout, process.stdout);
join("stderr", server.stderr, process.stderr);
server.on("exit", (code) => process.exit(code ?? 1));
process.stdin.on("end", () => (note("end", ""), server.stdin.end()));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => (note("end", signal), server.kill(signal)));

function join(from, input, output) {
    let rest = "";
    output.on("error", () => {});
    input.on("data", (chunk) => {
        output.write(chunk);
        const lines = (rest + chunk).split("\n");
        rest = lines.pop();
        for (const line of lines) note(from, line);
    });
}

function note(from, line) {
    appendFileSync(log, `${JSON.stringify({ at: Date.now(), from, line })}\n`);
}
