// Tasks with the files of a project.

import { call, run, script } from "../play.mjs";
import { FOLDER } from "../world.mjs";
import { counted } from "./heads.mjs";

const project = `${FOLDER}/project`;
const read = (path, jq) => call("files__read_text_file", { path }, jq);
const several = (paths) => call("files__read_multiple_files", { paths });
const list = (path) => call("files__list_directory", { path });
const write = (path, content) => call("files__write_file", { path, content });
const listed = (text) => text.split("\n").map((line) => line.replace("[FILE] ", ""));
// The parts of a result of read_multiple_files.
const parts = (text) => text.split(/\n---\n/).map((part) => part.slice(part.indexOf(":\n") + 2));

export const FILES = [
    {
        name: "TODOs of 18 source files, by person",
        expected: (world) => counted(world.names("project/src").flatMap((name) => [...world.text(name).matchAll(/TODO\((\w+)\)/g)].map(([, who]) => who))),
        *direct() {
            const [paths] = yield [call("files__search_files", { path: `${project}/src`, pattern: "**/*.js" })];
            const [text] = yield [several(paths.split("\n"))];
            return counted([...text.matchAll(/TODO\((\w+)\)/g)].map(([, who]) => who));
        },
        code: script`
            const paths = (await tools.files.search_files({ path: "/home/me/desk/project/src", pattern: "**/*.js" })).split("\n");
            const text = await tools.files.read_multiple_files({ paths });
            const count = {};
            for (const [, who] of text.matchAll(/TODO\((\w+)\)/g)) count[who] = (count[who] ?? 0) + 1;
            return count;
        `,
    },
    {
        name: "source files that no other imports",
        expected: (world) => {
            const names = world.names("project/src");
            const all = names.map((name) => world.text(name)).join("");
            return names.map((name) => name.split("/").at(-1)).filter((name) => !all.includes(`/${name}"`)).sort();
        },
        *direct() {
            const [paths] = yield [call("files__search_files", { path: `${project}/src`, pattern: "**/*.js" })];
            const [text] = yield [several(paths.split("\n"))];
            return paths.split("\n").map((path) => path.split("/").at(-1)).filter((name) => !text.includes(`/${name}"`)).sort();
        },
        code: script`
            const paths = (await tools.files.search_files({ path: "/home/me/desk/project/src", pattern: "**/*.js" })).split("\n");
            const text = await tools.files.read_multiple_files({ paths });
            const imported = new Set([...text.matchAll(/from ".*\/(.+?)"/g)].map((match) => match[1]));
            return paths.map((path) => path.split("/").at(-1)).filter((name) => !imported.has(name)).sort();
        `,
    },
    {
        name: "the three largest files of a tree",
        expected: (world) => world.names("project").sort((one, two) => world.size(two) - world.size(one)).slice(0, 3).map((name) => name.split("/").at(-1)),
        *direct() {
            const files = [];
            let folders = [project];
            while (folders.length > 0) {
                const texts = yield folders.map((path) => call("files__list_directory_with_sizes", { path }));
                folders = texts.flatMap((text, at) => [...text.matchAll(/^\[DIR\] (\S+)/gm)].map(([, name]) => `${folders[at]}/${name}`));
                for (const [, name, size, unit] of texts.join("\n").matchAll(/^\[FILE\] (.+?) +([\d.]+) (\w+)$/gm)) files.push([name, size * { B: 1, KB: 1024 }[unit]]);
            }
            return files.sort((one, two) => two[1] - one[1]).slice(0, 3).map(([name]) => name);
        },
        code: script`
            const files = [];
            async function walk(path) {
              const text = await tools.files.list_directory_with_sizes({ path });
              for (const [, name, size, unit] of text.matchAll(/^\[FILE\] (.+?) +([\d.]+) (\w+)$/gm)) {
                files.push({ name, size: size * { B: 1, KB: 1024, MB: 1048576 }[unit] });
              }
              await Promise.all([...text.matchAll(/^\[DIR\] (\S+)/gm)].map((match) => walk(path + "/" + match[1])));
            }
            await walk("/home/me/desk/project");
            return files.sort((a, b) => b.size - a.size).slice(0, 3).map((file) => file.name);
        `,
    },
    {
        name: "a longer timeout in five of ten settings files",
        expected: (world) => world.names("project/config").map((name) => JSON.parse(world.text(name))).filter(({ timeout }) => timeout === 30).map(({ name }) => name).sort(),
        effect: (world) => world.names("project/config").map((name) => JSON.parse(world.text(name)).timeout).sort().join() === "45,45,45,45,45,60,60,60,60,60",
        *direct() {
            const [names] = yield [list(`${project}/config`)];
            const paths = listed(names).map((name) => `${project}/config/${name}`);
            const [text] = yield [several(paths)];
            const short = parts(text).map((part) => JSON.parse(part)).filter(({ timeout }) => timeout === 30);
            yield short.map(({ name }) => call("files__edit_file", { path: `${project}/config/${name}.json`, edits: [{ oldText: '"timeout": 30', newText: '"timeout": 60' }] }));
            return short.map(({ name }) => name).sort();
        },
        code: script`
            const folder = "/home/me/desk/project/config/";
            const names = [...(await tools.files.list_directory({ path: folder })).matchAll(/\[FILE\] (.+)/g)].map((match) => match[1]);
            const changed = await Promise.all(names.map(async (name) => {
              const text = await tools.files.read_text_file({ path: folder + name });
              if (JSON.parse(text).timeout !== 30) return [];
              await tools.files.edit_file({ path: folder + name, edits: [{ oldText: '"timeout": 30', newText: '"timeout": 60' }] });
              return [name.replace(".json", "")];
            }));
            return changed.flat().sort();
        `,
    },
    {
        name: "a CSV of 220 rows, summed by region",
        expected: (world) => {
            const rows = world.text("sales.csv").trim().split("\n").slice(1).map((line) => line.split(","));
            return Object.fromEntries(["north", "south", "east", "west"].map((region) => [region, rows.filter((row) => row[1] === region).reduce((sum, row) => sum + Number(row[3]), 0)]));
        },
        *direct() {
            const [text] = yield [read(`${FOLDER}/sales.csv`)];
            const sums = {};
            for (const [, region, , units] of text.trim().split("\n").slice(1).map((line) => line.split(","))) sums[region] = (sums[region] ?? 0) + Number(units);
            return sums;
        },
        code: script`
            const text = await tools.files.read_text_file({ path: "/home/me/desk/sales.csv" });
            const sums = {};
            for (const line of text.trim().split("\n").slice(1)) {
              const [, region, , units] = line.split(",");
              sums[region] = (sums[region] ?? 0) + Number(units);
            }
            return sums;
        `,
    },
    {
        name: "errors in five logs, by module",
        expected: (world) => counted(world.names("project/logs").flatMap((name) => [...world.text(name).matchAll(/ ERROR (\w+)/g)].map(([, module]) => module))),
        *direct() {
            const [names] = yield [list(`${project}/logs`)];
            const [text] = yield [several(listed(names).map((name) => `${project}/logs/${name}`))];
            return counted([...text.matchAll(/ ERROR (\w+)/g)].map(([, module]) => module));
        },
        code: script`
            const folder = "/home/me/desk/project/logs/";
            const names = [...(await tools.files.list_directory({ path: folder })).matchAll(/\[FILE\] (.+)/g)].map((match) => match[1]);
            const text = await tools.files.read_multiple_files({ paths: names.map((name) => folder + name) });
            const count = {};
            for (const [, module] of text.matchAll(/ ERROR (\w+)/g)) count[module] = (count[module] ?? 0) + 1;
            return count;
        `,
    },
    {
        name: "levels in a log of 260 KB (direct: `jq` beside the call)",
        expected: (world) => counted(world.text("project/big.log").trim().split("\n").map((line) => line.split(" ")[1])),
        *direct() {
            const [text] = yield [read(`${project}/big.log`, 'split("\\n") | map(split(" ")[1] // empty) | group_by(.) | map({(.[0]): length}) | add')];
            return JSON.parse(text);
        },
        code: script`
            const text = await tools.files.read_text_file({ path: "/home/me/desk/project/big.log" });
            const count = {};
            for (const line of text.trim().split("\n")) {
              const level = line.split(" ")[1];
              count[level] = (count[level] ?? 0) + 1;
            }
            return count;
        `,
    },
    {
        name: "words that two translations lack",
        expected: (world) => {
            const [en, de, fr] = ["en", "de", "fr"].map((name) => JSON.parse(world.text(`project/words/${name}.json`)));
            const lacking = (words) => Object.keys(en).filter((key) => !(key in words));
            return { de: lacking(de), fr: lacking(fr) };
        },
        *direct() {
            const [text] = yield [several(["en", "de", "fr"].map((name) => `${project}/words/${name}.json`))];
            const [en, de, fr] = parts(text).map((part) => JSON.parse(part));
            const lacking = (words) => Object.keys(en).filter((key) => !(key in words));
            return { de: lacking(de), fr: lacking(fr) };
        },
        code: script`
            const [en, de, fr] = await Promise.all(["en", "de", "fr"].map(async (name) =>
              JSON.parse(await tools.files.read_text_file({ path: "/home/me/desk/project/words/" + name + ".json" }))));
            const lacking = (words) => Object.keys(en).filter((key) => !(key in words));
            return { de: lacking(de), fr: lacking(fr) };
        `,
    },
    {
        name: "copy a file of 8 KB",
        expected: () => "copied",
        effect: (world) => world.text("project/notes.md") === world.text("copy.md"),
        *direct() {
            const [text] = yield [read(`${project}/notes.md`)];
            yield [write(`${FOLDER}/copy.md`, text)];
            return "copied";
        },
        code: script`
            const content = await tools.files.read_text_file({ path: "/home/me/desk/project/notes.md" });
            await tools.files.write_file({ path: "/home/me/desk/copy.md", content });
            return "copied";
        `,
    },
    {
        name: "copy a log of 260 KB (direct: by its handle)",
        expected: () => "copied",
        effect: (world) => world.text("project/big.log") === world.text("copy.log"),
        *direct() {
            const [outline] = yield [read(`${project}/big.log`)];
            yield [write(`${FOLDER}/copy.log`, { $result: outline.match(/r_[\w-]{22}/)[0] })];
            return "copied";
        },
        code: script`
            const content = await tools.files.read_text_file({ path: "/home/me/desk/project/big.log" });
            await tools.files.write_file({ path: "/home/me/desk/copy.log", content });
            return "copied";
        `,
    },
    {
        name: "rename ten files",
        expected: (world) => world.names("photos").length,
        effect: (world) => world.names("photos").every((name) => /^photos\/img-\d+\.txt$/.test(name)),
        *direct() {
            const [names] = yield [list(`${FOLDER}/photos`)];
            const moved = yield listed(names).map((name) => call("files__move_file", { source: `${FOLDER}/photos/${name}`, destination: `${FOLDER}/photos/${name.toLowerCase().replace(" ", "-")}` }));
            return moved.length;
        },
        code: script`
            const folder = "/home/me/desk/photos/";
            const names = [...(await tools.files.list_directory({ path: folder })).matchAll(/\[FILE\] (.+)/g)].map((match) => match[1]);
            await Promise.all(names.map((name) =>
              tools.files.move_file({ source: folder + name, destination: folder + name.toLowerCase().replace(" ", "-") })));
            return names.length;
        `,
    },
    {
        name: "an index of the headings of six pages",
        expected: () => "written",
        effect: (world) => world.text("project/index.md") === world.names("project/docs").sort().map((name) => `${name.split("/").at(-1)}\n${[...world.text(name).matchAll(/^## (.+)/gm)].map(([, heading]) => `- ${heading}\n`).join("")}`).join("\n"),
        *direct() {
            const [found] = yield [list(`${project}/docs`)];
            const names = listed(found).sort();
            const [text] = yield [several(names.map((name) => `${project}/docs/${name}`))];
            const index = parts(text).map((part, at) => `${names[at]}\n${[...part.matchAll(/^## (.+)/gm)].map(([, heading]) => `- ${heading}\n`).join("")}`).join("\n");
            yield [write(`${project}/index.md`, index)];
            return "written";
        },
        code: script`
            const folder = "/home/me/desk/project/docs/";
            const names = [...(await tools.files.list_directory({ path: folder })).matchAll(/\[FILE\] (.+)/g)].map((match) => match[1]).sort();
            const pages = await Promise.all(names.map((name) => tools.files.read_text_file({ path: folder + name })));
            const content = pages.map((page, at) =>
              names[at] + "\n" + page.split("\n").filter((line) => line.startsWith("## ")).map((line) => "- " + line.slice(3) + "\n").join("")).join("\n");
            await tools.files.write_file({ path: "/home/me/desk/project/index.md", content });
            return "written";
        `,
    },
    {
        name: "one single read",
        expected: (world) => JSON.parse(world.text("project/config/billing.json")).port,
        *direct() {
            const [text] = yield [read(`${project}/config/billing.json`)];
            return JSON.parse(text).port;
        },
        *code() {
            const [text] = yield [run('return await tools.files.read_text_file({ path: "/home/me/desk/project/config/billing.json" });')];
            return JSON.parse(text).port;
        },
    },
    {
        name: "a page of 4 KB that has to be read whole",
        expected: (world) => world.text("project/changes.md").match(/new since (\w+)/)[1],
        *direct() {
            const [text] = yield [read(`${project}/changes.md`)];
            return text.match(/new since (\w+)/)[1];
        },
        *code() {
            const [text] = yield [run('return await tools.files.read_text_file({ path: "/home/me/desk/project/changes.md" });')];
            return text.match(/new since (\w+)/)[1];
        },
    },
];
