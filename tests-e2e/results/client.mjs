// A client that calls tools with `execute_tool`, as a model does.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export async function connect({ command, args, home }) {
    const env = { PATH: process.env.PATH, HOME: home };
    const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "inherit"] });
    const waiting = new Map();
    createInterface({ input: child.stdout }).on("line", (line) => {
        const message = JSON.parse(line);
        waiting.get(message.id)?.(message);
    });
    let last = 0;
    const ask = (method, params) => {
        const id = (last += 1);
        child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
        return new Promise((done) => waiting.set(id, done));
    };
    const opening = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "claude-code", version: "2" } };
    await ask("initialize", opening);
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
    // Gives the text of the result.
    const execute = async (input) => {
        const { result, error } = await ask("tools/call", { name: "execute_tool", arguments: input });
        const text = result?.content.map((block) => block.text ?? "").join("\n");
        if (!result || result.isError) throw new Error(`${JSON.stringify(input).slice(0, 200)}: ${error?.message ?? text}`);
        return text;
    };
    return { execute, stop: () => child.kill() };
}
