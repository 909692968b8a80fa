// How each host is asked for its servers, and how it is driven with what stands in its own files.

import { createInterface } from "node:readline";

import claudeCode from "../host/claude-code.mjs";
import codex from "../host/codex.mjs";
import geminiCli from "../host/gemini-cli.mjs";
import opencode from "../host/opencode.mjs";
import { installed } from "../installed.mjs";
import { end, run, start } from "./run.mjs";

const PROMPT = "Do what the script says.";
const codexPlain = codex.find(({ name }) => name === "codex-plain");

export const HOSTS = [
    {
        ...described(claudeCode),
        files: [".claude.json", ".claude/settings.json"],
        command: "claude",
        listed: (at) => listing(at, ["mcp", "list"], claudeEnv(at), /^(\S+): .* - (.*)$/gm, /Connected/),
        play: (at) => [at.path, ["-p", PROMPT, "--allowedTools", "mcp__plugbay,ToolSearch"], { cwd: at.cwd, env: { ...at.env, ...claudeEnv(at) } }],
        // Claude Code itself adds members to its file, at any start.
        added: (before, now) => added(JSON.parse(before), JSON.parse(now)),
    },
    {
        ...described(codexPlain),
        id: "codex",
        name: "codex",
        files: [".codex/config.toml"],
        listed: codexListed,
        play: (at) => [
            at.path,
            ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT],
            { cwd: at.cwd, env: { ...at.env, STUB_KEY: "stub" } },
        ],
    },
    {
        ...described(geminiCli),
        files: [".gemini/settings.json"],
        listed: (at) => listing(at, ["mcp", "list"], geminiEnv(at), /^\S (\S+): .* - (\w+)$/gm, /^Connected/),
        play: (at) => [
            at.path,
            ["-p", PROMPT, "-m", "gemini-2.5-flash", "--approval-mode", "yolo"],
            { cwd: at.cwd, env: { ...at.env, ...geminiEnv(at) } },
        ],
    },
    {
        ...described(opencode),
        files: [".config/opencode/opencode.jsonc"],
        listed: (at) => listing(at, ["mcp", "list"], opencodeEnv, /^●\s+\S\s+(\S+)\s+(\w+)/gm, /^connected/),
        play: (at) => [at.path, ["run", PROMPT], { cwd: at.cwd, env: { ...at.env, ...opencodeEnv } }],
    },
];

function described(host) {
    return {
        id: host.name,
        name: host.name,
        search: host.search,
        path() {
            const { path, problem } = installed(host);
            if (problem) {
                console.log(`${host.name}: skipped, ${problem}`);
                process.exit(3);
            }
            return path;
        },
    };
}

function claudeEnv({ model }) {
    return { ANTHROPIC_BASE_URL: model, ANTHROPIC_API_KEY: "stub", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" };
}

function geminiEnv({ model }) {
    return { GEMINI_API_KEY: "stub", GOOGLE_GEMINI_BASE_URL: model, GEMINI_CLI_NO_RELAUNCH: "true" };
}

const opencodeEnv = { OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_DEFAULT_PLUGINS: "1" };

// { names, connected, output } of a listing that people read.
async function listing(at, args, env, pattern, good) {
    const { output: written, errors } = await run(at.path, args, { cwd: at.cwd, env: { ...at.env, ...env } });
    const output = (written + errors).replace(/\x1b\[[0-9;]*m/g, "");
    const found = [...output.matchAll(pattern)];
    return { names: found.map(([, name]) => name), connected: found.every(([, , state]) => good.test(state)), output };
}

// `codex mcp list` starts nothing; its app server does.
async function codexListed(at) {
    const child = start(at.path, ["app-server"], { cwd: at.cwd, env: { ...at.env, STUB_KEY: "stub" }, stdio: ["pipe", "pipe", "ignore"] });
    const answers = new Map();
    createInterface({ input: child.stdout }).on("line", (line) => {
        const message = JSON.parse(line);
        answers.get(message.id)?.(message);
    });
    const ask = (id, method, params) => {
        child.stdin.write(`${JSON.stringify({ id, method, params })}\n`);
        return new Promise((answer) => answers.set(id, answer));
    };
    await ask(1, "initialize", { clientInfo: { name: "plugbay-e2e", version: "0" } });
    child.stdin.write(`${JSON.stringify({ method: "initialized" })}\n`);
    const answer = await ask(2, "mcpServerStatus/list", {});
    end(child);
    const servers = (answer.result?.data ?? []).filter(({ name }) => !name.startsWith("codex_"));
    const connected = servers.every(({ tools }) => Object.keys(tools ?? {}).length > 0);
    return { names: servers.map(({ name }) => name), connected, output: JSON.stringify(answer).slice(0, 2000) };
}

// The members that are new, if every member that was there is as it was.
function added(before, now) {
    const same = Object.keys(before).every((key) => JSON.stringify(sorted(before[key])) === JSON.stringify(sorted(now[key])));
    return same ? Object.keys(now).filter((key) => !(key in before)) : undefined;
}

// Nested objects with their keys in order.
function sorted(value) {
    if (Array.isArray(value) || typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
