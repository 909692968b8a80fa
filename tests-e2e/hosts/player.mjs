// Plays one script against whatever host asks, and writes down what the host showed in each turn.
//
// A step: { tool, input, field, result, absent, now }
//   tool    how the name of the tool ends that must be offered in this turn
//   input   what it is called with, or a function that makes it of the results so far
//   field   in a host that runs code: what is read from the result, which must be a value and no text
//   result  what its result must contain: a string, or a regular expression
//   absent  endings of names that must not be offered in this turn
//   now     the tool must be there without a search by the host's own means

const TITLE = "stub";
// A host may begin before its servers have listed their tools.
const MOST_SEARCHES = 3;

export class Player {
    #steps;
    #search;
    #waiting;
    #calls = 0;
    #results = [];
    #next = 0;
    #searches = 0;

    // `search` is the host's own tool for finding deferred tools: { tool, input(name) }.
    constructor(steps, search) {
        this.#steps = steps;
        this.#search = search;
        this.turns = [];
    }

    get passed() {
        return this.#next === this.#steps.length && !this.#waiting && this.turns.every((turn) => !turn.problem);
    }

    // What the model does in this turn: { call: { tool, input, id } } or { say }.
    next(turn) {
        // Titles, summaries, routing: requests beside the conversation offer no tools.
        if (turn.tools.length === 0) return { say: TITLE };
        const record = this.#record(turn);
        record.problem = this.#check(turn, record);
        if (record.problem) return this.#end();
        const step = this.#steps[this.#next];
        if (!step) return this.#end();
        const tool = ending(turn.tools, step.tool);
        if (tool && !tool.deferred) return this.#call(record, tool, this.#input(step), step);
        const finder = !step.now && this.#search && turn.tools.find(({ name }) => name === this.#search.tool);
        if (finder && this.#searches < MOST_SEARCHES) {
            this.#searches += 1;
            return this.#call(record, finder, this.#search.input(step.tool), undefined);
        }
        record.problem = `${step.tool} is not offered`;
        return this.#end();
    }

    #record(turn) {
        const record = {
            at: Date.now(),
            tools: turn.tools.map(({ name }) => name),
            deferred: turn.tools.filter(({ deferred }) => deferred).map(({ name }) => name),
            chars: size(turn.tools.filter(({ deferred }) => !deferred)),
            words: turn.words,
        };
        this.turns.push(record);
        return record;
    }

    // The result of the call before, and what must not be here.
    #check(turn, record) {
        const waiting = this.#waiting;
        this.#waiting = undefined;
        if (waiting) {
            const result = turn.results.find(({ id }) => id === waiting.id);
            record.result = result?.text;
            record.isOfStep = waiting.step !== undefined;
            if (!result) return `no result of ${waiting.name}`;
            const { result: expected } = waiting.step ?? {};
            if (result.failed) return `${waiting.name} failed: ${result.text.slice(0, 300)}`;
            if (!contains(result.text, expected)) return `the result lacks ${expected}: ${result.text.slice(0, 300)}`;
            if (waiting.step) this.#advance(result.text);
        }
        const unwanted = (this.#steps[this.#next]?.absent ?? []).find((name) => ending(turn.tools, name));
        return unwanted && `${unwanted} is offered`;
    }

    #input({ input = {} }) {
        return typeof input === "function" ? input(this.#results) : input;
    }

    #advance(result) {
        this.#results.push(result);
        this.#next += 1;
        this.#searches = 0;
    }

    #call(record, tool, input, step) {
        this.#calls += 1;
        const id = `call_${this.#calls}`;
        this.#waiting = { id, name: tool.name, step };
        record.called = tool.name;
        if (step) record.input = input;
        return { call: { tool, input, id, field: step?.field } };
    }

    #end() {
        return { say: "done" };
    }
}

// Hosts put a prefix of their own before a name, and some make an identifier of it.
export function ending(tools, name) {
    const plain = (text) => text.replaceAll("-", "_");
    const fits = tools.filter((tool) => plain(tool.name) === plain(name) || ["_", "."].some((mark) => plain(tool.name).endsWith(mark + plain(name))));
    return fits.find((tool) => !tool.deferred) ?? fits[0];
}

function size(tools) {
    return tools.reduce((sum, { definition }) => sum + JSON.stringify(definition).length, 0);
}

function contains(text, expected = "") {
    return expected instanceof RegExp ? expected.test(text) : text.includes(expected);
}
