// A server made of the official TypeScript SDK v2 and the SDK of the skills extension: both eras over stdio.
//
// Usage: node skills-server.mjs NAME     (with PLUGBAY_E2E_DIR naming what setup.sh installed)
//
// Its skill `git-workflow` has the same URIs at every NAME, and a text of its own. `only-NAME` is its own, and
// `hidden-NAME` is one that it does not list.

import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.env.PLUGBAY_E2E_DIR;
const load = createRequire(join(folder, "package.json"));
const { McpServer } = load("@modelcontextprotocol/server");
const { serveStdio } = load("@modelcontextprotocol/server/stdio");
const extension = join(folder, "node_modules/@olaservo/ext-skills/dist/server/index.js");
const { discoverSkills, registerSkillResources } = await import(pathToFileURL(extension));

const name = process.argv[2];
const skills = mkdtempSync(join(tmpdir(), "skills-"));
for (const skill of ["git-workflow", `only-${name}`, `hidden-${name}`]) {
    const text = `---\nname: ${skill}\ndescription: Branching and commits, as ${name} does it\nmetadata:\n  team: ${name}\n---\n`;
    write(`${skill}/SKILL.md`, `${text}\nBranch first, says ${name}. More in references/STYLE.md.\n`);
    write(`${skill}/references/STYLE.md`, `# Style of ${name}: é, 😀\n`);
}
const found = discoverSkills(skills);
found.get(`hidden-${name}`).listed = false;

serveStdio(() => {
    const server = new McpServer({ name, version: "1.0.0" }, { capabilities: { resources: {}, tools: {} } });
    server.registerTool("whoami", { description: "Says its name" }, () => ({ content: [{ type: "text", text: name }] }));
    registerSkillResources(server, found, skills, { template: true, directoryRead: true, ttlMs: 60_000 });
    return server;
});

function write(file, text) {
    mkdirSync(dirname(join(skills, file)), { recursive: true });
    writeFileSync(join(skills, file), text);
}
