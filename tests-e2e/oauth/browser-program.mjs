#!/usr/bin/env node
// The browser of a user, to be named in $BROWSER: takes a URL as its only argument, returns at once as browsers do, and
// goes through the login by itself.
//
// The environment says what to do: PLUGBAY_E2E_DIR and CHROMIUM; USER_OPTIONS, the options of `visit` as JSON; and
// USER_REPORT, a file for what the user saw last: the result of `visit` or {"failed": why}, with {"arguments"}.

import { spawn } from "node:child_process";
import { renameSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const [first, ...more] = process.argv.slice(2);
if (first === "--behind") await drive(more);
else open([first, ...more]);

// Keeps nothing of the program that opened it: neither its stdio nor its process group.
function open(given) {
    const args = [fileURLToPath(import.meta.url), "--behind", ...given];
    spawn(process.execPath, args, { detached: true, stdio: "ignore" }).unref();
}

async function drive(given) {
    let seen;
    try {
        const { visit } = await import("./user.mjs");
        seen = await visit(given[0], JSON.parse(process.env.USER_OPTIONS ?? "{}"));
    } catch (error) {
        seen = { failed: error.message };
    }
    const { USER_REPORT: report } = process.env;
    if (!report) return;
    writeFileSync(`${report}.new`, JSON.stringify({ ...seen, arguments: given }));
    renameSync(`${report}.new`, report);
}
