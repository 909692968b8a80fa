// A scripted model plays one version of a task, and every token that it reads and writes is counted.
//
// A version is a generator: it yields the calls of a turn and is given the texts of their results, and what it returns is the
// answer. It stands for a model that never miscounts. Code that is one script may be just that string.

import { count } from "../hosts/measure/tokens.mjs";

// What a model has in its context before the task: the host's own instructions and tools, without those of plugbay.
export const CONVERSATION = 10_000;

// A call of a tool by its known name, as a model makes it in mode `search`.
export function call(name, input, jq) {
    return { name: "execute_tool", arguments: { name, arguments: input, ...(jq && { jq }) } };
}

export function run(code) {
    return { name: "run_code", arguments: { code } };
}

// A script as a model writes it: backslashes as they are, and no indentation of ours.
export function script(strings) {
    const lines = strings.raw[0].replace(/^\n|\n *$/g, "").split("\n");
    const margin = Math.min(...lines.filter(Boolean).map((line) => line.search(/\S/)));
    return lines.map((line) => line.slice(margin)).join("\n");
}

export async function play(gateway, version, question) {
    const model = typeof version === "string" ? oneScript(version) : version();
    const base = CONVERSATION + count(gateway.surface) + count(question);
    const totals = { calls: 0, turns: 0, written: 0, entered: 0, read: 0, from: Date.now() };
    const write = (text) => {
        totals.written += count(text);
        totals.entered += count(text);
    };
    let failure;
    for (let step = model.next(); ; ) {
        totals.turns += 1;
        totals.read += base + totals.entered;
        if (step.done) {
            const answer = step.value;
            write(typeof answer === "string" ? answer : JSON.stringify(answer));
            // What one more turn would read at its end.
            const again = base + totals.entered;
            return { ...totals, again, answer, failure, to: Date.now() };
        }
        const results = await Promise.all(step.value.map((each) => gateway.call(each)));
        failure = results.find(({ failed }) => failed)?.text ?? failure;
        totals.calls += step.value.length;
        for (const each of step.value) write(JSON.stringify(each));
        for (const { text } of results) totals.entered += count(text);
        step = model.next(results.map(({ text }) => text));
    }
}

function* oneScript(code) {
    const [text] = yield [run(code)];
    return parsed(text);
}

// Whether the text of a result is a value or a string, only the task knows; answers are compared as values.
export function parsed(text) {
    try {
        return JSON.parse(text);
    } catch {
        return text;
    }
}
