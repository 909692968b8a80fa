// A model that is a script: one server on loopback that speaks every host's API.

import { createServer } from "node:http";

import * as anthropic from "./api/anthropic.mjs";
import * as chat from "./api/chat.mjs";
import * as gemini from "./api/gemini.mjs";
import * as responses from "./api/responses.mjs";

const APIS = [anthropic, gemini, chat, responses];

// `player` decides what the model does; `requests` keeps everything that was asked, for a close look.
export async function startModel(player) {
    const requests = [];
    const server = createServer(async (request, response) => {
        const path = new URL(request.url, "http://stub").pathname;
        const body = await bodyOf(request);
        requests.push({ at: Date.now(), method: request.method, path, headers: request.headers, body });
        const api = request.method === "POST" && APIS.find((api) => api.handles(path));
        if (!api) return nothing(response, path);
        const turn = api.read({ body });
        const act = player.next({ ...turn, body });
        const more = { model: body.model ?? "stub", path, stream: body.stream };
        if (act.call) api.call(response, { ...act.call, ...more });
        else api.say(response, { text: act.say, ...more });
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return {
        url: `http://127.0.0.1:${server.address().port}`,
        requests,
        stop: () => new Promise((resolve) => (server.close(resolve), server.closeAllConnections())),
    };
}

// Hosts ask for models, quotas and updates; an empty answer satisfies them.
function nothing(response, path) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(path.endsWith("/models") ? { object: "list", data: [], models: [] } : {}));
}

async function bodyOf(request) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    try {
        return JSON.parse(Buffer.concat(chunks).toString());
    } catch {
        return {};
    }
}
