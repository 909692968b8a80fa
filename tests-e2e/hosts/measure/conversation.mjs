// A conversation that uses three tools of three servers, again and again, as each surface wants it.

import { REPOSITORY } from "./ground.mjs";

const ZONES = ["Europe/Berlin", "Asia/Tokyo", "America/Lima", "Africa/Cairo", "Asia/Dubai", "Europe/Rome", "Asia/Seoul"];

// Inputs differ from round to round: several hosts stop a model that repeats itself.
const WANTED = [
    {
        server: "time",
        tool: "get_current_time",
        query: "get the current time in a timezone",
        input: (round) => ({ timezone: ZONES[round % ZONES.length] }),
        result: "datetime",
    },
    {
        server: "git",
        tool: "git_status",
        query: "show the working tree status of a git repository",
        input: (round) => ({ repo_path: REPOSITORY + "/".repeat(round) }),
        result: "branch",
    },
    {
        server: "everything",
        tool: "echo",
        query: "echo a message back",
        input: (round) => ({ message: `message number ${round} of this conversation` }),
        result: "Echo: message",
    },
];

// Makes so many calls. `surface()` gives the mode; `finished` gets the number of the request that had each result.
export function* conversation(script, { calls, surface, finished }) {
    const known = new Set();
    for (let done = 0; done < calls; done += 1) {
        const want = WANTED[done % WANTED.length];
        const input = want.input(Math.floor(done / WANTED.length));
        const result = yield* WAYS[surface()](script, want, input, known);
        if (result.missing) return `${want.tool} is not offered`;
        if (result.failed || !result.text.includes(want.result)) return `${want.tool}: ${result.text.slice(0, 300)}`;
        finished.push(result.at);
    }
    return undefined;
}

const WAYS = {
    *all(script, { tool, query }, input) {
        return yield { tool, input, query };
    },

    *search(script, { server, tool, query }, input, known) {
        const name = `${server}__${tool}`;
        if (!known.has(name)) {
            const found = yield { tool: "search_tools", input: { query }, query: "search tools" };
            if (found.missing || !found.text.includes(name)) return { ...found, failed: true, text: `${found.text ?? ""} lacks ${name}` };
            known.add(name);
        }
        return yield* through({ server, tool }, input);
    },

    *suite(script, { server, tool }, input, known) {
        const suite = `${server}_suite`;
        if (!known.has(server)) {
            const told = yield { tool: suite, input: { action: "introspect" }, query: suite };
            if (told.missing || !told.text.includes(tool)) return { ...told, failed: true, text: `${told.text ?? ""} lacks ${tool}` };
            known.add(server);
        }
        return yield { tool: suite, input: { action: "call", subtool: tool, args: input }, query: suite };
    },

    // A host that never lists again is told to call through.
    *activate(script, { server, tool, query }, input, known) {
        if (!known.has(server)) {
            const told = yield { tool: "gateway_activate", input: { name: server }, query: "activate a server" };
            if (told.missing || told.failed) return { ...told, failed: true, text: told.text ?? "gateway_activate is not offered" };
            known.add(server);
            if (told.text.includes("execute_tool")) known.add("execute_tool");
        }
        if (known.has("execute_tool")) return yield* through({ server, tool }, input);
        return yield { tool, input, query };
    },
};
WAYS.direct = WAYS.all;

function* through({ server, tool }, input) {
    return yield { tool: "execute_tool", input: { name: `${server}__${tool}`, arguments: input }, query: "execute a tool" };
}
