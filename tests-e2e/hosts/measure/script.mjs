// A model that is a generator: it yields the next call, is given the result, and goes on.
//
// It yields { tool, input, field, query, now }:
//   tool   how the name of the tool ends
//   input  what it is called with
//   field  in a host that runs code: what is read from the result, which must be a value
//   query  what a model would look for if the host shows no such tool
//   now    it must be there without a search by the host's own means
// and is given { text, failed, at }, `at` being the number of the request that had the result; or { missing: true } if
// the host offers no such tool, which costs no request.

import { ending } from "../player.mjs";

const MOST_SEARCHES = 3;

export class Script {
    // Every request of the conversation, in order, and those beside it (titles, summaries), which offer no tools.
    turns = [];
    beside = [];
    // Which requests were spent on the host's own search.
    searches = 0;
    finished = false;
    #run;
    #search;
    #step;
    #tries = 0;
    #waiting;
    #calls = 0;

    // `script` gets this object; `search` is the host's own: { tool, input(words), exact(name), byEnding }.
    constructor(script, search) {
        this.#search = search;
        this.#run = script(this);
    }

    // A tool that the current request offers.
    offered(name) {
        return ending(this.turns.at(-1)?.tools ?? [], name);
    }

    next(turn) {
        if (turn.tools.length === 0) {
            this.beside.push(turn.body);
            return { say: "stub" };
        }
        this.turns.push(turn);
        if (this.finished) return { say: "done" };
        if (this.turns.length === 1) this.#advance(undefined);
        else this.#take(turn);
        return this.#act(turn);
    }

    #take(turn) {
        const { id, found } = this.#waiting ?? {};
        const result = turn.results.find((each) => each.id === id);
        if (found) return;
        const at = this.turns.length - 1;
        this.#advance(result ? { text: result.text, failed: result.failed, at } : { text: "", failed: true, lost: true, at });
    }

    #advance(given) {
        this.#tries = 0;
        const { value, done } = this.#run.next(given);
        this.#step = value;
        this.finished = done;
    }

    #act(turn) {
        while (!this.finished) {
            const step = this.#step;
            const tool = ending(turn.tools, step.tool);
            if (tool && !tool.deferred) return this.#call(tool, step.input ?? {}, false, step.field);
            const finder = !step.now && this.#search && turn.tools.find(({ name }) => name === this.#search.tool);
            if (finder && this.#tries < MOST_SEARCHES) {
                const input = this.#words(step, tool?.name ?? named(turn.words, step.tool));
                this.#tries += 1;
                this.searches += 1;
                return this.#call(finder, input, true);
            }
            this.#advance({ missing: true });
        }
        return { say: "done" };
    }

    // A name that is shown is asked for exactly; else what a model would say first, and then the name.
    #words(step, name) {
        const { input, exact, byEnding } = this.#search;
        if (name && exact) return exact(name);
        return input(this.#tries === 0 && step.query && !byEnding ? step.query : step.tool);
    }

    #call(tool, input, found, field) {
        this.#calls += 1;
        const id = `call_${this.#calls}`;
        this.#waiting = { id, found };
        return { call: { tool, input, id, field } };
    }
}

// Some hosts name deferred tools in words only.
function named(words, tool) {
    return words.match(new RegExp(`\\bmcp__[\\w.-]*_${tool}\\b`))?.[0];
}
