// Writes the plugin in both layouts. Checks that of Agent Plugins by the rules of its specification; tests-e2e/plugin.sh has
// Claude Code check its own.
//
// Usage: node packaging/checks/plugins.mjs --binary FILE

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { project, top } from "../project.mjs";
import { handshake, holds, home, run, scratch } from "./report.mjs";
import { validate } from "./schemas.mjs";

const { values: options } = parseArgs({ options: { binary: { type: "string" } } });
const binary = resolve(options.binary);
const folder = scratch();
const env = home(folder, binary);

claudeCode(join(folder, "claude-code"));
await agentPlugins(join(folder, "agent-plugins"));

function claudeCode(plugin) {
    run(binary, ["plugin", plugin], { env });
    assert.deepEqual(readdirSync(plugin).sort(), [".claude-plugin", ".mcp.json", "README.md", "skills"]);
    const { name, version } = json(plugin, ".claude-plugin/plugin.json");
    assert.deepEqual([name, version], [project.name, project.version]);
    holds("claude-code: written");
}

async function agentPlugins(plugin) {
    run(binary, ["plugin", "--layout", "agent-plugins", plugin], { env });
    assert.deepEqual(readdirSync(plugin).sort(), ["README.md", "mcp.json", "plugin.json", "skills"]);
    const manifest = json(plugin, "plugin.json");
    manifestIsClosed(manifest);
    const servers = json(plugin, "mcp.json");
    serversAreClosed(servers);
    holds(`agent-plugins: plugin.json ${validate(manifest)}`);
    holds(`agent-plugins: mcp.json ${validate(servers)}`);
    skill(plugin);
    const { command, args } = servers.mcpServers.plugbay;
    assert.equal(command, "plugbay", "a bare name, found on the PATH");
    await handshake(binary, args, env);
    holds("agent-plugins: its server speaks MCP");
}

function manifestIsClosed({ $schema, name, version, description, author, license, ...others }) {
    assert.equal($schema, "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json");
    assert.match(name, /^(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?$/);
    for (const text of [version, description, license, author.name]) assert.equal(typeof text, "string");
    assert.deepEqual(others, {}, "the manifest has no other field");
    assert.deepEqual(Object.keys(author), ["name"]);
}

function serversAreClosed({ $schema, mcpServers, ...others }) {
    assert.equal($schema, "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json");
    assert.deepEqual(others, {});
    for (const { type, command, args, ...unknown } of Object.values(mcpServers)) {
        assert.equal(type, "stdio");
        assert(/^[^/\s]+$/.test(command) || command.startsWith("./"), command);
        assert(args.every((arg) => typeof arg === "string"));
        assert.deepEqual(unknown, {});
    }
}

// By the reference library of Agent Skills, where it is installed.
function skill(plugin) {
    const place = join(plugin, "skills/plugbay");
    const validator = join(process.env.PLUGBAY_E2E_DIR ?? join(top, "target/e2e"), "packaging-py/bin/agentskills");
    if (!existsSync(validator)) return holds("agent-plugins: the skill is not validated, skills-ref is not installed");
    run(validator, ["validate", place]);
    holds("agent-plugins: the skill is valid by skills-ref");
}

function json(plugin, file) {
    return JSON.parse(readFileSync(join(plugin, file), "utf8"));
}
