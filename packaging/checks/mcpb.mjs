// Validates and packs the MCPB bundle, and starts the server of the unpacked bundle as a host would.
//
// Usage: node packaging/checks/mcpb.mjs --binary FILE

import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

import { hostPlatform, platforms, top } from "../project.mjs";
import { attempt, handshake, holds, home, run, scratch, skip } from "./report.mjs";

const { values: options } = parseArgs({ options: { binary: { type: "string" } } });
const binary = resolve(options.binary);
const tools = join(process.env.PLUGBAY_E2E_DIR ?? join(top, "target/e2e"), "packaging/node_modules");
const mcpb = join(tools, ".bin/mcpb");
if (!existsSync(mcpb)) skip("mcpb is not installed: tests-e2e/setup.sh packaging");

const folder = scratch();
const env = home(folder, binary);
const source = join(folder, "bundle");
const manifestFile = join(source, "manifest.json");

for (const platform of Object.keys(platforms)) {
    build(platform);
    run(mcpb, ["validate", manifestFile]);
}
holds(`the manifests of ${Object.keys(platforms).length} platforms are valid`);
rejectsBroken();

build(hostPlatform());
const bundle = join(folder, "plugbay.mcpb");
run(mcpb, ["pack", source, bundle]);
const unpacked = join(folder, "unpacked");
run(mcpb, ["unpack", bundle, unpacked]);
holds(`packed: ${Math.round(statSync(bundle).size / 1024)} KiB`);
await startAsHost();

function build(platform) {
    run("node", [join(top, "packaging/mcpb/build.mjs"), "--out", source, "--binary", `${platform}=${binary}`]);
}

// Else a validator that accepts anything would pass this check.
function rejectsBroken() {
    const manifest = JSON.parse(readFileSync(manifestFile, "utf8"));
    writeFileSync(manifestFile, JSON.stringify({ ...manifest, server: { ...manifest.server, type: "program" } }));
    assert.notEqual(attempt(mcpb, ["validate", manifestFile]).status, 0);
}

// With the command that the reference implementation makes of the manifest.
async function startAsHost() {
    const { getMcpConfigForManifest } = await import(pathToFileURL(join(tools, "@anthropic-ai/mcpb/dist/index.js")));
    const manifest = JSON.parse(readFileSync(join(unpacked, "manifest.json"), "utf8"));
    const common = { manifest, extensionPath: unpacked, systemDirs: { HOME: folder }, pathSeparator: "/" };
    assert.equal(await getMcpConfigForManifest({ ...common, userConfig: {} }), undefined, "the file must be chosen");
    const config = join(folder, ".config/plugbay/config.jsonc");
    const { command, args } = await getMcpConfigForManifest({ ...common, userConfig: { config } });
    assert.deepEqual(args, ["serve", "--config", config]);
    const { name } = await handshake(command, args, env);
    assert.equal(name, "plugbay");
    holds("the unpacked bundle speaks MCP with the chosen configuration file");
}
