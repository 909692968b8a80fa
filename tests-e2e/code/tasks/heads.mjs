// What a model does in its head.

// How often each word is there.
export function counted(words) {
    const counts = {};
    for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
    return counts;
}

// The commits of a `git_log`, newest first: { hash, author, day, message }.
export function commits(text) {
    const each = /Commit: (\w+)\nAuthor: (.+)\nDate: (\S+).*\nMessage: (.+)/g;
    return [...text.matchAll(each)].map(([, hash, author, day, message]) => ({ hash, author, day, message }));
}

// The rows of a `read_query`, which come as Python prints them.
export function rows(text) {
    return JSON.parse(text.replaceAll("'", '"').replaceAll(": None", ": null"));
}
