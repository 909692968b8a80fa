// What a host must have seen of a server, row by row, whichever eras they speak.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const VOCABULARY = readFileSync(new URL("vocabulary.json", import.meta.url), "utf8");

const WITHOUT_TASKS = ["py2", "rs1"];

// One verdict a row: { row, problem }, where no problem is a pass.
export function judge(host, hostEra, server, era, seen) {
    const rows = expected(server, era);
    // The Python SDK's modern line has no tasks: its server has none to show, its host cannot take a modern one.
    // The Rust SDK has none of the legacy era: its server has none to show, to its host each is one long call.
    const both = !WITHOUT_TASKS.includes(server) && !(host === "py2" && era === "modern");
    if ("tasks" in seen && both) rows.tasks = tasks(server, era === hostEra && host !== "rs1");
    // The Rust SDK cannot read a question by URL without `elicitationId`, which only its own modern server has.
    if (host === "rs2" && era === "modern" && server !== "rs2") delete rows["elicitation url"];
    return Object.entries(rows).map(([row, wanted]) => {
        const got = seen[row];
        if (got?.failed) return { row, problem: got.failed };
        if (isDeepStrictEqual(got, wanted)) return { row };
        return { row, problem: `wanted ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}` };
    });
}

// Of a task a host hears only if it speaks of tasks as the server does; to others it is one long call.
function tasks(server, sameEra) {
    const text = `worked for ${server}`;
    return sameEra ? { task: "working", text } : { text };
}

function expected(server, era) {
    const vocabulary = JSON.parse(VOCABULARY.replaceAll("SERVER", server));
    const { tools, resources, prompts, pixel } = vocabulary;
    const message = 'héllo "world" 😀';
    const note = (uri, times) => ({ uri, mimeType: "text/plain", text: `${uri} touched ${times} times` });
    const completion = (about) => ({ values: ["paris", "park", "party", about], total: 9, hasMore: true });
    const watched = `${server}://notes/watched`;
    return {
        tools: {
            definition: { ...tools[0], name: `${server}__echo` },
            result: {
                content: [{ type: "text", text: message }, { type: "image", data: pixel, mimeType: "image/png" }],
                structuredContent: { said: message },
                from: server,
            },
            failure: { isError: true, text: "as it always does" },
        },
        resources: {
            listed: resources[2],
            text: note(watched, 0),
            blob: { uri: `${server}://notes/pixel`, mimeType: "image/png", blob: pixel },
            byTemplate: note(`${server}://note/7`, 0),
        },
        prompts: {
            listed: { ...prompts[0], name: `${server}__greet` },
            messages: [{ role: "user", content: { type: "text", text: `greet Ada from ${server}` } }],
        },
        completion: { prompt: completion("greet"), template: completion(`${server}://note/{id}`) },
        sampling: {
            role: "assistant",
            model: "matrix",
            content: { type: "text", text: `answer to sampling of ${server}` },
        },
        "elicitation form": { content: { word: `answer to form of ${server}` }, action: "accept" },
        "elicitation url": { action: "accept" },
        roots: { roots: [{ uri: "file:///matrix", name: "matrix" }] },
        progress: {
            steps: [1, 2, 3].map((step) => [step, 3, `${step} of 3`]),
            text: "counted",
            proceeded: "go on",
        },
        cancellation: { ended: "given up", text: "a wait was cancelled" },
        logging: [{ level: "warning", logger: server, data: { from: server, n: 1.5 } }],
        "list change": ["tools", "resources", "prompts"],
        "resource update": { told: [watched], text: note(watched, 1).text },
        // The server's lists have two entries a page; it tells which cursors it was asked for, and in which era.
        pagination: {
            tools: WITHOUT_TASKS.includes(server) ? tools.length - 1 : tools.length,
            resources: 3,
            templates: 3,
            prompts: 3,
            era,
            cursors: { tools: ["2", "4", "6", "8", "10"], resources: ["2"], templates: ["2"], prompts: ["2"] },
        },
    };
}
