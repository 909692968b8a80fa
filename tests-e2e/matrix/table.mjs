// The outcomes as one table: a row a feature, a column a pairing of eras.

const PAIRS = [
    ["legacy", "legacy"],
    ["legacy", "modern"],
    ["modern", "legacy"],
    ["modern", "modern"],
];

export function render(outcomes) {
    const rows = [...new Set(outcomes.map((outcome) => outcome.row))];
    const width = Math.max(...rows.map((row) => row.length));
    const line = (first, cells) => `${first.padEnd(width)}  ${cells.map((text) => text.padEnd(16)).join("  ")}`.trimEnd();
    const head = line("host → server", PAIRS.map((pair) => pair.join(" → ")));
    const body = rows.map((row) => line(row, PAIRS.map((pair) => cell(outcomes, row, pair))));
    const problems = outcomes
        .filter((outcome) => outcome.problem)
        .map(({ row, host, over, server, problem }) => `${row}: ${host} over ${over}, server ${server}: ${problem}`);
    return [head, ...body, ...problems].join("\n");
}

function cell(outcomes, row, [hostEra, serverEra]) {
    const own = outcomes.filter((one) => one.row === row && one.hostEra === hostEra && one.serverEra === serverEra);
    if (own.length === 0) return "–";
    const passed = own.filter((outcome) => !outcome.problem).length;
    return `${passed === own.length ? "pass" : "FAIL"} ${passed}/${own.length}`;
}
