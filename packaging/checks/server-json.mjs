// Checks server.json, and one with bundles as a release writes it.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { project, top } from "../project.mjs";
import { serverJson } from "../server-json.mjs";
import { holds, run, scratch } from "./report.mjs";
import { validate } from "./schemas.mjs";

const committed = JSON.parse(readFileSync(join(top, "server.json"), "utf8"));
assert.deepEqual(committed, serverJson(), "server.json is not up to date: run `node packaging/server-json.mjs`");
check(committed);
holds(`server.json is up to date with version ${committed.version}; ${validate(committed)}`);

const folder = scratch();
const bundle = join(folder, "plugbay-linux-x64.mcpb");
writeFileSync(bundle, "a bundle");
const out = join(folder, "server.json");
const release = "https://downloads.example/v1/";
run("node", [join(top, "packaging/server-json.mjs"), "--owner", "someone", "--release", release, "--bundle", bundle, "--out", out]);
const released = JSON.parse(readFileSync(out, "utf8"));
check(released);
validate(released);
assert.equal(released.name, "io.github.someone/plugbay");
const { identifier, fileSha256 } = released.packages[1];
assert.equal(identifier, "https://downloads.example/v1/plugbay-linux-x64.mcpb");
assert.equal(fileSha256, createHash("sha256").update("a bundle").digest("hex"));
holds("a release adds its bundles with their checksums");

// What the registry demands of our kinds of packages.
function check({ $schema, name, title, description, version, packages, ...others }) {
    assert.match($schema, /^https:\/\/\S+\/\d{4}-\d\d-\d\d\/server\.schema\.json$/);
    assert.match(name, /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/);
    for (const text of [title, description]) assert(text.length >= 1 && text.length <= 100, text);
    assert.equal(version, project.version);
    assert.deepEqual(others, {});
    for (const { registryType, identifier, transport, fileSha256, version, packageArguments = [] } of packages) {
        assert.equal(version, project.version);
        assert.deepEqual(transport, { type: "stdio" });
        for (const { type, name, value, valueHint } of packageArguments) {
            assert(type === "named" ? name : type === "positional" && (value ?? valueHint), `an argument of ${identifier}`);
        }
        if (registryType === "npm") assert.equal(identifier, project.name);
        else assert(registryType === "mcpb" && identifier.startsWith("https://") && /^[a-f0-9]{64}$/.test(fileSha256));
    }
}
