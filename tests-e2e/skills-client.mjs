// A client made of the official TypeScript SDK v2 and the SDK of the skills extension, which verifies what it reads.
//
// Usage: node skills-client.mjs PLAN.json     (with PLUGBAY_E2E_DIR naming what setup.sh installed)
//
// PLAN:   {"era": "legacy" | "modern", "command", "args", "env", "cwd", or instead of these "url",
//          "expect": [names of tools that must be listed first], "get": [URIs of skills that may not be listed]}
// prints: {"era", "directories": whether they are declared,
//          "skills": [{"uri", "name", "text", "files": {URI: text}, "walked": [URIs of files]}],
//          "got": [{"uri", "text"} | {"error": code}]}

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";

// Only a test that fails waits that long, also on a machine at ten times its load.
const PATIENCE_MS = 240_000;
const LOOK_EVERY_MS = 200;

const plan = JSON.parse(readFileSync(process.argv[2], "utf8"));
const folder = process.env.PLUGBAY_E2E_DIR;
const load = createRequire(join(folder, "package.json"));
const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");
const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");
const extension = join(folder, "node_modules/@olaservo/ext-skills/dist/client/index.js");
const sdk = await import(pathToFileURL(extension));

const mode = plan.era === "modern" ? { pin: "2026-07-28" } : "legacy";
const client = new Client({ name: "skills-client", version: "1.0.0" }, { versionNegotiation: { mode } });
await client.connect(transport(), { timeout: PATIENCE_MS });
try {
    await listed(plan.expect);
    if (!sdk.serverSupportsSkills(client)) throw new Error("skills are not declared");
    const entries = await sdk.listSkills(client);
    const directories = sdk.serverSupportsDirectoryRead(client);
    // All skills at once: the answers of their servers cross.
    const skills = await Promise.all(entries.map((entry) => read(entry, directories)));
    const got = [];
    for (const uri of plan.get) got.push(await get(uri));
    const era = client.getProtocolEra?.() ?? "legacy";
    process.stdout.write(JSON.stringify({ era, directories, skills, got }));
} finally {
    await client.close();
}

// The SDK compares every file with its digest, and the frontmatter with the entry.
async function read(entry, directories) {
    const text = await sdk.readSkill(client, entry);
    const again = await sdk.getSkill(client, entry.uri);
    if (JSON.stringify(again.resources) !== JSON.stringify(entry.resources)) throw new Error(`${entry.uri} has changed`);
    const files = {};
    for (const { uri } of entry.resources.filter(({ uri }) => uri !== entry.uri)) {
        files[uri] = body(await sdk.readSkillResource(client, entry, uri));
    }
    const root = entry.uri.slice(0, -"/SKILL.md".length);
    const walked = directories ? (await sdk.walkDirectory(client, root)).map(({ uri }) => uri).sort() : [];
    return { uri: entry.uri, name: entry.frontmatter.name, text: body(text), files, walked };
}

async function get(uri) {
    try {
        const entry = await sdk.getSkill(client, uri);
        return { uri: entry.uri, text: body(await sdk.readSkill(client, entry)) };
    } catch (error) {
        return { error: error.code ?? String(error.message) };
    }
}

function body(read) {
    return typeof read === "string" ? read : read.text ?? read.content ?? JSON.stringify(read);
}

function transport() {
    if (plan.url) return new StreamableHTTPClientTransport(new URL(plan.url));
    const { command, args, env, cwd } = plan;
    return new StdioClientTransport({ command, args, env, cwd, stderr: "inherit" });
}

// What a gateway lists may still grow while its servers start for the first time.
async function listed(names) {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
        const { tools } = await client.listTools({}, { cacheMode: "refresh", timeout: PATIENCE_MS });
        if (names.every((name) => tools.some((tool) => tool.name === name))) return;
        if (Date.now() > deadline) throw new Error(`never listed: ${names}; listed: ${tools.map((tool) => tool.name)}`);
        await sleep(LOOK_EVERY_MS);
    }
}
