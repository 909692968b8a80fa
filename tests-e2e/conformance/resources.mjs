// The resources that the suite asks for.

import { PNG, sdk } from "./sdk.mjs";

export function addResources(server) {
    fixed(server, "static-text", "text/plain", { text: "This is the content of the static text resource." });
    fixed(server, "static-binary", "image/png", { blob: PNG });
    fixed(server, "watched-resource", "text/plain", { text: "Watched resource content" });
    server.registerResource(
        "template",
        new sdk.ResourceTemplate("test://template/{id}/data", { list: undefined }),
        { description: "Data by id", mimeType: "application/json" },
        (uri, { id }) => {
            const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
            return { contents: [{ uri: uri.href, mimeType: "application/json", text }] };
        },
    );
    // Nothing here ever changes, so there is nothing to keep of a subscription.
    server.server.setRequestHandler("resources/subscribe", () => ({}));
    server.server.setRequestHandler("resources/unsubscribe", () => ({}));
}

function fixed(server, name, mimeType, content) {
    const uri = `test://${name}`;
    server.registerResource(name, uri, { description: `The resource ${name}`, mimeType }, () => ({
        contents: [{ uri, mimeType, ...content }],
    }));
}
