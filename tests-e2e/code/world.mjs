// The folder that the tasks work in: a project, a repository, a database and a memory. The same every time.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { commits, database, documents, graph } from "./contents.mjs";

// The folder in scripts, calls and results, so that the length of a temporary folder's name does not count.
export const FOLDER = "/home/me/desk";

// Values as JSON: the database is read without any server.
const QUERY = `
import json, sqlite3, sys
found = sqlite3.connect(sys.argv[1])
found.row_factory = sqlite3.Row
print(json.dumps([dict(row) for row in found.execute(sys.argv[2])]))
`;

const FILL = `
import sqlite3, sys
filled = sqlite3.connect(sys.argv[1])
filled.executescript(sys.stdin.read())
`;

export class World {
    #scratch = realpathSync(mkdtempSync(join(tmpdir(), "plugbay-code-")));
    #pristine = join(this.#scratch, "pristine");
    folder = join(this.#scratch, "work");
    home = join(this.#scratch, "home");

    constructor() {
        mkdirSync(this.home);
        for (const [name, text] of Object.entries(documents())) write(join(this.#pristine, name), text);
        write(join(this.#pristine, "memory.jsonl"), graph().map((each) => JSON.stringify(each)).join("\n"));
        execFileSync("python3", ["-c", FILL, join(this.#pristine, "shop.db")], { input: database() });
        const repository = join(this.#pristine, "repo");
        execFileSync("git", ["init", "--quiet", "--template=", "--initial-branch", "main", repository]);
        execFileSync("git", ["-C", repository, "-c", "fastimport.unpackLimit=1", "fast-import", "--quiet"], { input: commits() });
        execFileSync("git", ["-C", repository, "checkout", "--quiet", "main"]);
        execFileSync("git", ["-C", repository, "config", "user.name", "Me"]);
        execFileSync("git", ["-C", repository, "config", "user.email", "me@example.com"]);
        this.reset();
    }

    // As it was in the beginning. The folder itself stays, as servers may hold it.
    reset() {
        mkdirSync(this.folder, { recursive: true });
        for (const name of readdirSync(this.folder)) rmSync(join(this.folder, name), { recursive: true });
        cpSync(this.#pristine, this.folder, { recursive: true });
    }

    // Recorded text has FOLDER; the gateway gets and gives the real one.
    real(value) {
        return JSON.parse(JSON.stringify(value).replaceAll(FOLDER, this.folder));
    }

    told(text) {
        return text.replaceAll(this.folder, FOLDER);
    }

    text(name) {
        return readFileSync(join(this.folder, name), "utf8");
    }

    // The names of all files below a folder, with the folder's own name in front.
    names(name) {
        return readdirSync(join(this.folder, name), { withFileTypes: true }).flatMap((entry) => {
            const path = `${name}/${entry.name}`;
            return entry.isDirectory() ? this.names(path) : [path];
        });
    }

    size(name) {
        return statSync(join(this.folder, name)).size;
    }

    rows(query) {
        return JSON.parse(execFileSync("python3", ["-c", QUERY, join(this.folder, "shop.db"), query], { encoding: "utf8" }));
    }

    git(...args) {
        return execFileSync("git", ["-C", join(this.folder, "repo"), ...args], { encoding: "utf8" }).trim();
    }

    // { entities, relations } of the memory.
    graph() {
        const all = this.text("memory.jsonl").split("\n").filter(Boolean).map((line) => JSON.parse(line));
        return { entities: all.filter(({ type }) => type === "entity"), relations: all.filter(({ type }) => type === "relation") };
    }

    remove() {
        rmSync(this.#scratch, { recursive: true, force: true });
    }
}

function write(path, text) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
}
