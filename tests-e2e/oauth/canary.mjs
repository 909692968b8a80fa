// Looks for secrets where none may be: in everything that was printed, and in every file except the store of tokens.

import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

// Where plugbay keeps tokens, below the home.
const TOKEN_STORE = /^state\/plugbay\/auth\//;

// One line for each place: `written` has {name, stdout, stderr} of each process.
export function findSecrets(secrets, home, written) {
    const needles = secrets.flatMap(spellings);
    const found = [];
    for (const { name, stdout, stderr } of written) {
        if (contains(stdout, needles)) found.push(`stdout of ${name}`);
        if (contains(stderr, needles)) found.push(`stderr of ${name}`);
    }
    for (const { path, mode, text } of filesBelow(home)) {
        const place = relative(home, path);
        if (!contains(text, needles)) continue;
        if (!TOKEN_STORE.test(place)) found.push(`file ${place}`);
        else if (mode & 0o077) found.push(`file ${place}, which others may read (${mode.toString(8)})`);
    }
    return found;
}

// The files below a home that have one of these secrets, wherever they are.
export function filesWith(secrets, home) {
    const needles = secrets.flatMap(spellings);
    return filesBelow(home).filter(({ text }) => contains(text, needles)).map(({ path }) => relative(home, path));
}

function spellings(secret) {
    const encoded = [encodeURIComponent(secret), Buffer.from(secret).toString("base64").replace(/=+$/, "")];
    return [...new Set([secret, ...encoded])];
}

function contains(text, needles) {
    return needles.some((needle) => text.includes(needle));
}

// Sockets and pipes have no content.
function filesBelow(folder) {
    return readdirSync(folder).flatMap((name) => {
        const path = join(folder, name);
        const stat = lstatSync(path);
        if (stat.isDirectory()) return filesBelow(path);
        if (!stat.isFile()) return [];
        return [{ path, mode: stat.mode & 0o777, text: readFileSync(path, "latin1") }];
    });
}
