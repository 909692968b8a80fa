// Server-sent events, and text that is spread over nested parts.

export function events(response, list) {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    for (const { event, data } of list) {
        if (event) response.write(`event: ${event}\n`);
        response.write(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
    }
    response.end();
}

// Every string called `text` in a value, and strings that stand alone.
export function flat(value) {
    if (typeof value === "string") return value;
    if (Array.isArray(value)) return value.map(flat).filter(Boolean).join("\n");
    return typeof value?.text === "string" ? value.text : "";
}
