// Two runs side by side.

// One row a scenario: { scenario, direct, through, worse }. A run that was not made is undefined.
export function compare(direct, through) {
    const row = (scenario) => {
        const [one, two] = [direct.get(scenario), through?.get(scenario)];
        return { scenario, direct: one, through: two, worse: through !== undefined && passes(one) && !passes(two) };
    };
    return [...direct.keys()].sort().map(row);
}

export function render(version, rows) {
    const width = Math.max(...rows.map((row) => row.scenario.length));
    const lines = rows.flatMap((row) => [
        `${row.scenario.padEnd(width)}  ${cell(row.direct).padEnd(14)}  ${cell(row.through)}${remark(row)}`,
        ...(row.worse ? (row.through?.failed ?? ["it was not run"]).map((what) => `    ${shorten(what)}`) : []),
    ]);
    const passing = (side) => rows.filter((row) => passes(row[side])).length;
    const head = `${version.padEnd(width)}  ${"direct".padEnd(14)}  through plugbay`;
    const through = rows.some((row) => row.through) ? `${passing("through")} of ${rows.length}` : "–";
    const total = `${"scenarios that pass".padEnd(width)}  ${`${passing("direct")} of ${rows.length}`.padEnd(14)}  ${through}`;
    return `${[head, ...lines, total].join("\n")}\n`;
}

// With nothing to check there is nothing to pass.
export function passes(run) {
    return run !== undefined && run.failed.length === 0 && run.passed > 0;
}

export function cell(run) {
    if (run === undefined) return "–";
    if (run.passed + run.failed.length === 0) return "not applicable";
    const all = run.passed + run.failed.length;
    return run.failed.length === 0 ? `pass ${run.passed}/${all}` : `FAIL ${run.passed}/${all}`;
}

// A scenario that finds less to check passes too, but says less.
function remark({ direct, through, worse }) {
    if (worse) return "  <<";
    return passes(through) && through.passed < direct.passed ? "  (fewer checks)" : "";
}

export function shorten(text) {
    const line = text.replace(/\s+/g, " ");
    return line.length > 160 ? `${line.slice(0, 159)}…` : line;
}
