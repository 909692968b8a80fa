// The installed packages that the programs beside this file are made of.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const load = createRequire(join(process.env.PLUGBAY_E2E_DIR, "package.json"));

// A package that has only ES modules.
export function loadModule(name) {
    return import(pathToFileURL(load.resolve(name)));
}

export { load };
