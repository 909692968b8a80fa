// A host in a web page: the official client, and an AppBridge for each page that it shows.
//
// `host` in the page: `connect`, `tools`, `read`, and `open`, which calls tools and shows their panels, all at the same time.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, PostMessageTransport, RESOURCE_MIME_TYPE, getToolUiResourceUri } from "@modelcontextprotocol/ext-apps/app-bridge";

const INFO = { name: "apps-host", version: "1.0.0" };
let client, listed;

globalThis.host = {
    async connect(url, era) {
        const mode = era === "modern" ? { pin: "2026-07-28" } : "legacy";
        const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: [RESOURCE_MIME_TYPE] } };
        client = new Client(INFO, { capabilities: { extensions }, versionNegotiation: { mode } });
        await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    },

    async tools() {
        listed = (await client.listTools()).tools;
        return listed.map((tool) => ({ name: tool.name, page: getToolUiResourceUri(tool) }));
    },

    open(...names) {
        return Promise.all(names.map(open));
    },

    read(uri) {
        return client.readResource({ uri }).then(({ contents }) => contents[0].text, (error) => error.message);
    },
};

// The call and the page are asked for at the same time, as hosts do.
async function open(name) {
    const tool = listed.find((tool) => tool.name === name);
    const uri = getToolUiResourceUri(tool);
    const [result, { contents }] = await Promise.all([client.callTool({ name, arguments: {} }), client.readResource({ uri })]);
    const [content] = contents;
    const frame = panel(name, uri);
    const bridge = new AppBridge(client, INFO, { serverTools: {}, logging: {} });
    const ready = new Promise((resolve) => (bridge.oninitialized = resolve));
    await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
    frame.srcdoc = withPolicy(content);
    await ready;
    await bridge.sendToolInput({ arguments: {} });
    await bridge.sendToolResult(result);
    return { asked: uri, uri: content.uri, mimeType: content.mimeType, meta: content._meta, result: result._meta };
}

function panel(name, uri) {
    const panel = document.createElement("div");
    panel.className = "panel";
    panel.id = name;
    const head = document.createElement("code");
    head.textContent = `${name}  ${uri}`;
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-scripts";
    panel.append(head, frame);
    document.getElementById("panels").append(panel);
    return frame;
}

// The default policy of the specification, with what the page declares.
function withPolicy({ text, _meta }) {
    const connect = _meta?.ui?.csp?.connectDomains ?? ["'none'"];
    const policy = `default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src ${connect.join(" ")}`;
    return text.replace("<head>", `<head><meta http-equiv="Content-Security-Policy" content="${policy}">`);
}
