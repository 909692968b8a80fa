// The outcomes as one table: a row a feature, a column a pairing of eras.

const PAIRS = [
    ["legacy", "legacy"],
    ["legacy", "modern"],
    ["modern", "legacy"],
    ["modern", "modern"],
];

// What is a pass and yet not all that one could wish for.
const NOTES = [
    "tasks, legacy → modern: one long call, since a modern server decides itself what becomes a task",
    "tasks, modern → legacy: one long call, since a legacy result is only sent to the request that waits for it",
];

export function render(outcomes) {
    const rows = [...new Set(outcomes.map((outcome) => outcome.row))];
    const width = Math.max(...rows.map((row) => row.length));
    const line = (first, cells) => `${first.padEnd(width)}  ${cells.map((text) => text.padEnd(16)).join("  ")}`.trimEnd();
    const head = line("host → server", PAIRS.map((pair) => pair.join(" → ")));
    const body = rows.map((row) => line(row, PAIRS.map((pair) => cell(outcomes, row, pair))));
    const reasons = new Set(outcomes.filter((outcome) => outcome.without).map(({ row, without }) => `${row}: ${without}`));
    const problems = outcomes
        .filter((outcome) => outcome.problem)
        .map(({ row, host, over, server, problem }) => `${row}: ${host} over ${over}, server ${server}: ${problem}`);
    return [head, ...body, "", "not among these:", ...reasons, ...NOTES, ...problems].join("\n");
}

function cell(outcomes, row, [hostEra, serverEra]) {
    const pair = outcomes.filter((one) => one.row === row && one.hostEra === hostEra && one.serverEra === serverEra);
    const own = pair.filter((outcome) => !outcome.without);
    if (own.length === 0) return "–";
    const passed = own.filter((outcome) => !outcome.problem).length;
    return `${passed === own.length ? "pass" : "FAIL"} ${passed}/${own.length}`;
}
