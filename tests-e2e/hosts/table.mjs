// One run of one host, a line per turn.

export function render(host, scenario, round, { passed, turns, seconds, code, output, heard }) {
    const head = `${host}  ${scenario} #${round}  ${passed ? "pass" : "FAIL"}  ${seconds.toFixed(1)} s`;
    const lines = turns.map((turn, index) => `  turn ${index + 1}  ${offered(turn)}  ${before(turn)}${after(turn)}`);
    const client = heard?.client ? [`  ${heard.client.name} ${heard.client.version}, MCP ${heard.protocol}, relists after ${times(heard.relisted)}`] : ["  the server was not started"];
    const trouble = passed ? [] : [`  exit ${code}: ${shorten(output, 600)}`];
    return `${[head, ...client, ...lines, ...trouble].join("\n")}\n`;
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
