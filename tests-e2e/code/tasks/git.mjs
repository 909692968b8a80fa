// Tasks with a repository of forty commits.

import { call, script } from "../play.mjs";
import { FOLDER } from "../world.mjs";
import { commits, counted } from "./heads.mjs";

const repo_path = `${FOLDER}/repo`;
const log = (more) => call("git__git_log", { repo_path, max_count: 100, ...more });
const show = (revision) => call("git__git_show", { repo_path, revision });
const SINCE = "2026-01-20T00:00:00Z";
const added = (text) => text.match(/^\+(?!\+\+)/gm)?.length ?? 0;

export const GIT = [
    {
        name: "the commits since a day that touched one file",
        expected: (world) => world.git("log", `--since=${SINCE}`, "--format=%s", "--", "src/prices.js").split("\n"),
        *direct() {
            const found = commits((yield [log({ start_timestamp: SINCE })])[0]);
            const shown = yield found.map(({ hash }) => show(hash));
            return found.filter((_, at) => shown[at].includes("b/src/prices.js")).map(({ message }) => message);
        },
        code: script`
            const repo_path = "/home/me/desk/repo";
            const log = await tools.git.git_log({ repo_path, max_count: 100, start_timestamp: "2026-01-20T00:00:00Z" });
            const commits = [...log.matchAll(/Commit: (\w+)[\s\S]*?Message: (.+)/g)];
            const shown = await Promise.all(commits.map((commit) => tools.git.git_show({ repo_path, revision: commit[1] })));
            return commits.filter((_, at) => shown[at].includes("b/src/prices.js")).map((commit) => commit[2]);
        `,
    },
    {
        name: "forty commits, counted by author",
        expected: (world) => counted(world.git("log", "--format=%an").split("\n")),
        *direct() {
            return counted(commits((yield [log()])[0]).map(({ author }) => author));
        },
        code: script`
            const log = await tools.git.git_log({ repo_path: "/home/me/desk/repo", max_count: 100 });
            const count = {};
            for (const [, who] of log.matchAll(/^Author: (.+)/gm)) count[who] = (count[who] ?? 0) + 1;
            return count;
        `,
    },
    {
        name: "lines that each author added in ten commits",
        expected: (world) => {
            const lines = {};
            for (const part of world.git("log", "-10", "--format=@%an", "--numstat").split("@").slice(1)) {
                const [author, ...files] = part.trim().split("\n");
                lines[author] = (lines[author] ?? 0) + files.filter(Boolean).reduce((sum, file) => sum + Number(file.split("\t")[0]), 0);
            }
            return lines;
        },
        *direct() {
            const found = commits((yield [log({ max_count: 10 })])[0]);
            const shown = yield found.map(({ hash }) => show(hash));
            const lines = {};
            found.forEach(({ author }, at) => (lines[author] = (lines[author] ?? 0) + added(shown[at])));
            return lines;
        },
        code: script`
            const repo_path = "/home/me/desk/repo";
            const log = await tools.git.git_log({ repo_path, max_count: 10 });
            const lines = {};
            await Promise.all([...log.matchAll(/Commit: (\w+)\nAuthor: (.+)/g)].map(async ([, revision, author]) => {
              const text = await tools.git.git_show({ repo_path, revision });
              const added = text.split("\n").filter((line) => line.startsWith("+") && !line.startsWith("+++"));
              lines[author] = (lines[author] ?? 0) + added.length;
            }));
            return lines;
        `,
    },
    {
        name: "the branches that have a commit",
        expected: (world) => world.git("branch", "--contains", "next~1", "--format=%(refname:short)"),
        *direct() {
            const [text] = yield [call("git__git_branch", { repo_path, branch_type: "local", contains: "next~1" })];
            return text.trim();
        },
        code: script`
            return (await tools.git.git_branch({ repo_path: "/home/me/desk/repo", branch_type: "local", contains: "next~1" })).trim();
        `,
    },
    {
        name: "write a file, stage and commit it",
        expected: () => "committed",
        effect: (world) => world.git("log", "-1", "--format=%s", "--name-only") === "chore: version 2.0\n\nversion.txt" && world.git("status", "--short") === "",
        *direct() {
            yield [call("files__write_file", { path: `${repo_path}/version.txt`, content: "2.0\n" })];
            yield [call("git__git_add", { repo_path, files: ["version.txt"] })];
            yield [call("git__git_commit", { repo_path, message: "chore: version 2.0" })];
            return "committed";
        },
        code: script`
            const repo_path = "/home/me/desk/repo";
            await tools.files.write_file({ path: repo_path + "/version.txt", content: "2.0\n" });
            await tools.git.git_add({ repo_path, files: ["version.txt"] });
            await tools.git.git_commit({ repo_path, message: "chore: version 2.0" });
            return "committed";
        `,
    },
    {
        name: "the files that two branches have differently",
        expected: (world) => world.git("diff", "--name-only", "next").split("\n").sort(),
        *direct() {
            const [text] = yield [call("git__git_diff", { repo_path, target: "next" })];
            return [...text.matchAll(/^diff --git a\/(\S+)/gm)].map(([, name]) => name).sort();
        },
        code: script`
            const text = await tools.git.git_diff({ repo_path: "/home/me/desk/repo", target: "next" });
            return [...text.matchAll(/^diff --git a\/(\S+)/gm)].map((match) => match[1]).sort();
        `,
    },
    {
        name: "a file of one line in five revisions",
        expected: (world) => [0, 8, 16, 24, 32].map((back) => world.git("show", `main~${back}:version.txt`)),
        *direct() {
            const texts = yield [0, 8, 16, 24, 32].map((back) => show(`main~${back}:version.txt`));
            return texts.map((text) => text.trim());
        },
        // The text of a version reads as a number: the script takes it from the whole result.
        code: script`
            return await Promise.all([0, 8, 16, 24, 32].map(async (back) => {
              const { content } = await tools.git.git_show({ repo_path: "/home/me/desk/repo", revision: "main~" + back + ":version.txt" }).raw;
              return content[0].text.trim();
            }));
        `,
    },
];
