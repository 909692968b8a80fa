// Validates documents against JSON Schemas that are not part of this repository.
//
// PLUGBAY_SCHEMAS names a folder that has them under the last part of their address. Without it, only the rules that each
// check spells out are checked.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";

import { top } from "../project.mjs";

export function validate(document) {
    const name = basename(document.$schema);
    const file = join(process.env.PLUGBAY_SCHEMAS ?? "", name);
    if (!process.env.PLUGBAY_SCHEMAS || !existsSync(file)) return `rules of ${name} checked by hand`;
    const tools = join(process.env.PLUGBAY_E2E_DIR ?? join(top, "target/e2e"), "packaging/");
    const require = createRequire(tools);
    const schema = JSON.parse(readFileSync(file, "utf8"));
    const Ajv = require(schema.$schema.includes("2020-12") ? "ajv/dist/2020" : "ajv").default;
    const ajv = new Ajv({ strict: false, validateFormats: false });
    const matches = ajv.compile(schema);
    assert(matches(document), JSON.stringify(matches.errors, null, 2));
    return `valid by ${schema.$id}`;
}
