// What was played, as the table of docs/code.md.

const number = (value) => Math.round(value).toLocaleString("en-US");

export function table(played) {
    const head = "| task | direct: calls | turns | tokens in context | tokens read | code: runs (calls inside) | turns | tokens in context | tokens read | tokens read, with code |";
    const lines = played.map(({ name, direct, code }) => row(name, direct, code));
    const [direct, code] = ["direct", "code"].map((side) => total(played.map((each) => each[side])));
    const all = row(`**all ${played.length}**`, direct, code);
    const more = played.filter(({ direct, code }) => code.written > direct.written).length;
    const written = `The model itself writes ${number(direct.written)} tokens with calls and ${number(code.written)} with code, which is more in ${more} tasks.`;
    const looked = `If each task needed one more turn for a look at what results are like, code would read ${number(code.read + code.again)} tokens.`;
    return [head, `|---|${"--:|".repeat(8)}---|`, ...lines, all, "", written, looked].join("\n");
}

function total(outcomes) {
    const keys = ["calls", "inner", "turns", "written", "entered", "read", "again"];
    return Object.fromEntries(keys.map((key) => [key, outcomes.reduce((sum, outcome) => sum + outcome[key], 0)]));
}

function row(name, direct, code) {
    const cells = [name, direct.calls, direct.turns, number(direct.entered), number(direct.read), `${code.calls} (${code.inner})`, code.turns, number(code.entered), number(code.read), verdict(code.read / direct.read)];
    return `| ${cells.join(" | ")} |`;
}

function verdict(ratio) {
    const percent = 100 * Math.abs(ratio - 1);
    if (percent < 0.05) return "the same";
    const words = percent < 9.5 ? percent.toFixed(1) : percent.toFixed(0);
    return ratio > 1 ? `**${words} % more**` : `${words} % less`;
}
