// An MCP server with an app, made of the official packages, on stdio.
//
// Usage: node server.mjs NAME legacy|modern     (with PLUGBAY_E2E_DIR naming what setup.sh installed)
//
// Whatever its NAME, it has the page ui://panel/main.html, the tools `show` and `refresh`, and `only_NAME`, which is for its
// page alone. Everything that it says has its NAME in it.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [name, era] = process.argv.slice(2);
const load = createRequire(join(process.env.PLUGBAY_E2E_DIR, "package.json"));
const { McpServer } = load("@modelcontextprotocol/server");
const { StdioServerTransport, serveStdio } = load("@modelcontextprotocol/server/stdio");
const { registerAppTool, registerAppResource, RESOURCE_MIME_TYPE } = await packaged("dist/src/server/index.js");

const PAGE = "ui://panel/main.html";
const HTML = page();

if (era === "modern") serveStdio(build, { legacy: "reject" });
else await build().connect(new StdioServerTransport());

function build() {
    const server = new McpServer({ name, version: "1.0.0" });
    const ui = { resourceUri: PAGE };
    const says = (what) => () => ({ content: [{ type: "text", text: `${what} of ${name}` }], _meta: { "example.com/of": name, ui } });
    registerAppTool(server, "show", { description: "Shows a panel", _meta: { ui } }, says("data"));
    registerAppTool(server, "refresh", { description: "Refreshes a panel", _meta: { ui: { visibility: ["model", "app"] } } }, says("refreshed"));
    registerAppTool(server, `only_${name}`, { description: "For the page", _meta: { ui: { ...ui, visibility: ["app"] } } }, says("own call"));
    registerAppResource(server, "Panel", PAGE, {}, () => ({
        contents: [{ uri: PAGE, mimeType: RESOURCE_MIME_TYPE, text: HTML, _meta: { ui: { csp: { connectDomains: [`https://${name}.example`] } } } }],
    }));
    return server;
}

function packaged(file) {
    return import(pathToFileURL(join(process.env.PLUGBAY_E2E_DIR, "node_modules/@modelcontextprotocol/ext-apps", file)));
}

// The page, with the package's client for pages in it, as a bundler would have put it there.
function page() {
    const file = join(process.env.PLUGBAY_E2E_DIR, "node_modules/@modelcontextprotocol/ext-apps/dist/src/app-with-deps.js");
    // Exports become members of an object, because a page that is one file has nothing to import from.
    const client = readFileSync(file, "utf8").replace(/export\s*\{([^}]*)\};?\s*(\/\/#.*)?\s*$/, (_, names) => {
        const members = names.split(",").map((one) => one.trim().split(/\s+as\s+/)).map(([own, shown]) => `${JSON.stringify(shown ?? own)}: ${own}`);
        return `globalThis.apps = {${members.join(",")}};`;
    });
    return `<!doctype html>
<html><head><style>body { font: 16px sans-serif; margin: 12px } h1 { font-size: 18px }</style></head>
<body><h1>Page of ${name}</h1><p id="data"></p><p id="own"></p><p id="shared"></p>
<button id="refresh">refresh</button>
<script type="module">${client.replaceAll("</script", "<\\/script")}
const app = new apps.App({ name: "panel of ${name}", version: "1.0.0" }, {});
const show = (id, text) => { document.getElementById(id).textContent = text; };
const call = (name) => app.callServerTool({ name, arguments: {} }).then(({ content }) => content[0].text, (error) => error.message);
app.ontoolresult = async ({ content }) => {
    show("data", content[0].text);
    show("own", await call("only_${name}"));
};
document.getElementById("refresh").onclick = async () => show("shared", await call("refresh"));
await app.connect();
</script></body></html>`;
}
