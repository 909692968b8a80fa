// The tool definitions of a `tools/list` response, each as the text that was sent.

// All pages of a list: a map from a tool's name to the text of its definition.
export async function listTools(client) {
    const tools = new Map();
    for (let cursor; ; ) {
        const { result, line } = await client.request("tools/list", cursor === undefined ? {} : { cursor });
        const texts = elements(member(member(line, "result"), "tools"));
        result.tools.forEach(({ name }, index) => tools.set(name, texts[index]));
        if (result.nextCursor === undefined) return tools;
        cursor = result.nextCursor;
    }
}

// A definition without its name: the text before the name's value and the text after it.
export function nameless(definition) {
    const { start, end } = members(definition).find(({ key }) => key === "name");
    return `${definition.slice(0, start)}…${definition.slice(end)}`;
}

function member(object, key) {
    const found = members(object).find((each) => each.key === key);
    if (!found) throw new Error(`no ${key} in ${object.slice(0, 80)}`);
    return object.slice(found.start, found.end);
}

// The members of a JSON object: each key, and where its value stands.
function members(text) {
    const found = [];
    for (let at = skipSpace(text, skipSpace(text, 0) + 1); text[at] !== "}"; ) {
        const keyEnd = endOfValue(text, at);
        const key = JSON.parse(text.slice(at, keyEnd));
        const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
        const end = endOfValue(text, start);
        found.push({ key, start, end });
        at = afterComma(text, end);
    }
    return found;
}

function elements(text) {
    const found = [];
    for (let at = skipSpace(text, skipSpace(text, 0) + 1); text[at] !== "]"; ) {
        const end = endOfValue(text, at);
        found.push(text.slice(at, end));
        at = afterComma(text, end);
    }
    return found;
}

// The text has been parsed before, so it is JSON: brackets and strings are all that must be followed.
function endOfValue(text, start) {
    if (text[start] === '"') return endOfString(text, start) + 1;
    if (!"{[".includes(text[start])) return endOfScalar(text, start);
    let depth = 0;
    for (let at = start; at < text.length; at += 1) {
        if (text[at] === '"') at = endOfString(text, at);
        else if ("{[".includes(text[at])) depth += 1;
        else if ("}]".includes(text[at]) && --depth === 0) return at + 1;
    }
    throw new Error("the text ends inside a value");
}

function endOfScalar(text, start) {
    const end = text.slice(start).search(/[\s,\]}]/);
    return end < 0 ? text.length : start + end;
}

function endOfString(text, start) {
    for (let at = start + 1; ; at += 1) {
        if (text[at] === "\\") at += 1;
        else if (text[at] === '"') return at;
    }
}

function afterComma(text, at) {
    const next = skipSpace(text, at);
    return text[next] === "," ? skipSpace(text, next + 1) : next;
}

function skipSpace(text, at) {
    while (/\s/.test(text[at] ?? "")) at += 1;
    return at;
}
