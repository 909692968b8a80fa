// The files of the errands: a log, a list of issues, and source files.

export function log() {
    const level = (n) => (n % 400 === 7 ? "ERROR" : n % 50 === 3 ? "WARN" : "INFO");
    const line = (_, n) => `2026-01-02T03:${pad((n / 60) % 60)}:${pad(n % 60)}Z ${level(n)} worker-${n % 7} "job ${n}" took ${(n * 13) % 997} ms\n`;
    return Array.from({ length: 6000 }, line).join("").slice(0, 300_000);
}

export function issues() {
    const issue = (_, n) => ({
        number: n,
        title: `Something about part ${n % 37} is not as it should be`,
        state: n % 3 === 0 ? "closed" : "open",
        user: { login: `user${n % 50}`, id: n % 50 },
        labels: n % 4 === 0 ? [{ name: "bug" }] : [],
        created_at: `2026-01-${pad((n % 28) + 1)}T10:00:00Z`,
        body: "It happens now and then, and nobody knows why. ".repeat((n % 5) + 1),
    });
    return JSON.stringify(Array.from({ length: 1000 }, issue));
}

// So many KB of JavaScript.
export function source(kilobytes) {
    const one = (n) => `// Adds up part ${n} of all orders.\nexport function total${n}(orders) {\n    let sum = 0;\n    for (const { price, count } of orders) {\n        sum += price * count;\n    }\n    return sum + ${n};\n}\n\n`;
    let text = "";
    for (let n = 0; text.length < kilobytes * 1000; n += 1) text += one(n);
    return text.slice(0, kilobytes * 1000);
}

function pad(number) {
    return String(Math.floor(number)).padStart(2, "0");
}
