// The suite's client scenarios with plugbay as the client, in front of hosts of both eras.

import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { clientScenarios, runClient } from "./suite.mjs";
import { cell, passes, shorten } from "./table.mjs";

const DRIVER = fileURLToPath(new URL("client.mjs", import.meta.url));
const ERAS = ["legacy", "modern"];
const AT_ONCE = 3;
const TITLE = "plugbay as the client";

// The suite runs an extension's scenario in any version; these are the ones with a lifecycle of their own.
const VERSIONS_OF_EXTENSIONS = ["2025-11-25", "2026-07-28"];

// Prints a table and gives the number of cells that fail. Without names, all scenarios are judged.
export async function judgeClient(plugbay, versions, names, scratch) {
    const all = await clientScenarios();
    const [judged, others] = split(all, ({ scenario, versions }) => isOurs(scenario, versions));
    const rows = judged
        .filter(({ scenario }) => names.length === 0 || names.includes(scenario))
        .flatMap(({ scenario, versions: known }) =>
            (isExtension(known) ? VERSIONS_OF_EXTENSIONS : known)
                .filter((version) => versions.includes(version))
                .map((version) => ({ scenario, version, runs: {} })),
        );
    if (rows.length === 0) throw new Error("the suite has no such client scenario in these versions");
    const run = async ({ row, era }) => {
        const folder = mkdtempSync(join(scratch, "client-"));
        const env = { ...process.env, PLUGBAY_BIN: plugbay, PLUGBAY_HOST_ERA: era };
        row.runs[era] = await runClient(`${process.execPath} ${DRIVER}`, env, row.scenario, row.version, folder);
    };
    const cells = rows.flatMap((row) => ERAS.map((era) => ({ row, era })));
    const queue = cells.values();
    const worker = async () => {
        for (const cell of queue) await run(cell);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    // The suite measures time: what fails on a busy machine is judged once more, by itself.
    for (const cell of cells.filter(({ row, era }) => !passes(row.runs[era]))) await run(cell);
    console.log(render(rows));
    console.log(`not judged, because hosts read skills: ${others.map(({ scenario }) => scenario).join(", ")}\n`);
    return rows.flatMap((row) => Object.values(row.runs)).filter((run) => !passes(run)).length;
}

function isExtension([first]) {
    return first === "extension";
}

// Of the extensions, those of authorization.
function isOurs(scenario, versions) {
    return scenario.startsWith("auth/") || !isExtension(versions);
}

function split(list, goes) {
    return [list.filter(goes), list.filter((item) => !goes(item))];
}

function render(rows) {
    const width = Math.max(TITLE.length, ...rows.map((row) => row.scenario.length));
    const line = (scenario, version, cells) =>
        `${scenario.padEnd(width)}  ${version.padEnd(10)}  ${cells.map((text) => text.padEnd(14)).join("  ")}`.trimEnd();
    const lines = rows.flatMap(({ scenario, version, runs }) => [
        line(scenario, version, ERAS.map((era) => cell(runs[era]))),
        ...ERAS.flatMap((era) => runs[era].failed.map((what) => `    ${era} host: ${shorten(what)}`)),
    ]);
    return [line(TITLE, "version", ERAS.map((era) => `${era} host`)), ...lines].join("\n");
}
