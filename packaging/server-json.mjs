// Writes server.json, the entry of plugbay in an MCP registry.
//
// Usage: node packaging/server-json.mjs [--owner ACCOUNT] [--release URL] [--bundle FILE]... [--out FILE]
//
// The npm package is always in it. Each bundle is added with its checksum and its address below URL. A registry accepts a
// name only from the owner of its namespace, so a release gives its own account.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { project, top, writeJson } from "./project.mjs";

// The name that the registry and the npm package must agree on.
export function serverName(owner = "plugbay") {
    return `io.github.${owner}/plugbay`;
}

export function serverJson({ owner, release, bundles = [] } = {}) {
    return {
        $schema: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        name: serverName(owner),
        title: "plugbay",
        description: project.description,
        version: project.version,
        packages: [npmPackage(), ...bundles.map((file) => bundlePackage(file, release))],
    };
}

function npmPackage() {
    return {
        registryType: "npm",
        identifier: project.name,
        version: project.version,
        runtimeHint: "npx",
        transport: { type: "stdio" },
        packageArguments: [{ type: "positional", value: "serve" }, configArgument()],
    };
}

// A bundle's manifest has its own arguments.
function bundlePackage(file, release) {
    return {
        registryType: "mcpb",
        identifier: `${release.replace(/\/$/, "")}/${basename(file)}`,
        version: project.version,
        fileSha256: createHash("sha256").update(readFileSync(file)).digest("hex"),
        transport: { type: "stdio" },
    };
}

function configArgument() {
    return {
        type: "named",
        name: "--config",
        description: "Use only this configuration file. By default plugbay reads that of the user and of the project.",
        format: "filepath",
        isRequired: false,
    };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const { values } = parseArgs({
        options: {
            owner: { type: "string" },
            release: { type: "string" },
            bundle: { type: "string", multiple: true, default: [] },
            out: { type: "string", default: join(top, "server.json") },
        },
    });
    if (values.bundle.length > 0 && !values.release) {
        console.error("server-json.mjs: --bundle needs --release URL");
        process.exit(2);
    }
    writeJson(values.out, serverJson({ ...values, bundles: values.bundle }));
}
