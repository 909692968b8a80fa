// What the runs were like, for people.

// One run of one host, a line per turn.
export function render(host, scenario, round, { passed, turns, seconds, code, output, observed }) {
    const head = `${host}  ${scenario} #${round}  ${passed ? "pass" : "FAIL"}  ${seconds.toFixed(1)} s`;
    const lines = turns.map((turn, index) => `  turn ${index + 1}  ${offered(turn)}  ${before(turn)}${after(turn)}`);
    const trouble = passed ? [] : [`  exit ${code}: ${shorten(output, 600)}`];
    return `${[head, `  ${greeting(observed)}`, ...lines, ...trouble].join("\n")}\n`;
}

// All runs, a line per host and scenario.
export function summary(played) {
    const names = [...new Set(played.map(nameOf))];
    const lines = names.map((name) => {
        const runs = played.filter((run) => nameOf(run) === name);
        const passed = runs.filter((run) => run.passed).length;
        const seconds = runs.map((run) => run.seconds).sort((one, two) => one - two)[Math.floor(runs.length / 2)];
        return `${name.padEnd(34)} ${passed} of ${runs.length} passed, ${seconds.toFixed(1)} s`;
    });
    return lines.length > 0 ? lines.join("\n") : "nothing was run";
}

function greeting(observed) {
    if (!observed?.client) return "the server was not started";
    return `${observed.client.name} ${observed.client.version}, MCP ${observed.protocol}, relists after ${times(observed.relisted)}`;
}

function nameOf({ host, scenario }) {
    return `${host}  ${scenario}`;
}

function offered({ tools, deferred, chars }) {
    const kept = deferred.length > 0 ? `, ${deferred.length} deferred` : "";
    return `${String(tools.length - deferred.length).padStart(3)} tools${kept}, ${String(chars).padStart(6)} chars`;
}

function before({ result }) {
    return result === undefined ? "" : `← ${shorten(result, 60)}  `;
}

function after({ problem, called }) {
    if (problem) return `FAIL: ${shorten(problem, 200)}`;
    return called ? `→ ${called}` : "→ done";
}

function times(list) {
    if (list.length === 0) return "no change";
    return list.map((milliseconds) => (Number.isNaN(milliseconds) ? "never" : `${milliseconds} ms`)).join(", ");
}

function shorten(text, length) {
    const line = text.replace(/\s+/g, " ").trim();
    return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}
