// What a host must have seen of a server, row by row, whichever eras they speak.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const VOCABULARY = readFileSync(new URL("vocabulary.json", import.meta.url), "utf8");

// One verdict a row: { row }, which is a pass, { row, problem }, or { row, without }: why it cannot be seen.
export function judge(host, hostEra, server, era, seen) {
    const rows = expected(server, era);
    // To a host that does not speak of tasks as the server does, one is a long call.
    rows.tasks = tasks(server, era === hostEra && host !== "rs1");
    return Object.entries(rows).map(([row, wanted]) => {
        const without = impossible(row, host, server, era);
        if (without) return { row, without };
        const got = seen[row];
        if (got?.failed) return { row, problem: got.failed };
        if (isDeepStrictEqual(got, wanted)) return { row };
        return { row, problem: `wanted ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}` };
    });
}

// What the SDKs themselves cannot do.
function impossible(row, host, server, era) {
    if (row === "tasks" && server === "py2") return "the Python SDK 2 has no tasks: its server has none to show";
    if (row === "tasks" && server === "rs1") return "the Rust SDK has no legacy tasks: its server has none to show";
    if (row === "tasks" && host === "py2" && era === "modern") return "the Python SDK 2 has no tasks: its host cannot take one";
    if (row === "elicitation url" && host === "rs2" && ["ts2", "py2"].includes(server)) {
        return "the Rust SDK reads no elicitation by URL without `elicitationId`, which modern servers need not send";
    }
}

// A host sees a task only if both know tasks in the same form; to others it is one long call.
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
        "resource update": { updated: [watched], text: note(watched, 1).text },
        // The server's lists have two entries a page; it returns the cursors that it was sent, and in which era.
        pagination: {
            tools: ["py2", "rs1"].includes(server) ? tools.length - 1 : tools.length,
            resources: 3,
            templates: 3,
            prompts: 3,
            era,
            cursors: { tools: ["2", "4", "6", "8", "10"], resources: ["2"], templates: ["2"], prompts: ["2"] },
        },
    };
}
