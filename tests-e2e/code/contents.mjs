// What is in the world of the tasks. No chance and no clock: each number is made of the one before it.

const PEOPLE = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn"];
const CITIES = ["Berlin", "Tokyo", "Lima", "Oslo", "Cairo"];
const MODULES = ["cart", "checkout", "coupons", "events", "export", "invoice", "layout", "login", "mail", "menu", "orders", "prices", "report", "search", "session", "stock", "tax", "users"];
const SERVICES = ["auth", "billing", "cart", "docs", "events", "files", "gate", "home", "index", "jobs"];

// What customers wrote, and whether they complain: nothing but reading tells.
export const REVIEWS = [
    ["The lamp arrived a week early and looks better than in the picture. My desk is finally bright.", false],
    ["I have asked three times for the missing screws. Nobody answers, and the shelf still lies on the floor.", true],
    ["Not bad at all! I had feared that the colour would be off, and it is not.", false],
    ["Works. Then it does not. Then it works again. I would have liked a kettle without moods.", true],
    ["My cat loves the box. I love what was inside. We have no further wishes.", false],
    ["If you like to wait on hold for an hour, this is the shop for you. The chair itself wobbles.", true],
    ["It does what the page says, no more and no less, and the price was fair.", false],
    ["Second parcel, same broken glass. I am done sending photographs of it.", true],
];

const pad = (number, length = 2) => String(number).padStart(length, "0");
const pick = (list, n) => list[n % list.length];
const range = (length, each) => Array.from({ length }, (_, n) => each(n));

// Text by name of the file.
export function documents() {
    return {
        ...Object.fromEntries(MODULES.map((name, n) => [`project/src/${pick(["core", "pages", "jobs"], n)}/${name}.js`, source(name, n)])),
        ...Object.fromEntries(SERVICES.map((name, n) => [`project/config/${name}.json`, service(name, n)])),
        ...Object.fromEntries(range(5, (n) => [`project/logs/app-${n + 1}.log`, log(60, n + 1)])),
        ...Object.fromEntries(REVIEWS.map(([text], n) => [`reviews/${n + 1}.txt`, `${text}\n`])),
        ...Object.fromEntries(range(6, (n) => [`project/docs/${pick(["start", "install", "setup", "usage", "faq", "help"], n)}.md`, manual(n)])),
        ...Object.fromEntries(range(10, (n) => [`photos/IMG ${n + 1}.TXT`, `A picture of ${pick(CITIES, n)}.\n`])),
        ...Object.fromEntries(["en", "de", "fr"].map((language, n) => [`project/words/${language}.json`, words(language, n)])),
        "project/big.log": log(4500, 9),
        "project/notes.md": range(90, (n) => `- ${pad((n % 28) + 1)}.03.: ${pick(PEOPLE, n * 5)} looked at ${pick(MODULES, n * 7)} and wrote down what is slow, what is wrong, and what can wait.`).join("\n"),
        "project/changes.md": range(12, (n) => `## 1.${12 - n}.0\n\n${range(5, (m) => `- ${pick(MODULES, n * 5 + m)}: ${pick(["faster", "mended", "simpler", "new"], n + m)} since ${pick(PEOPLE, n + m)} changed how it keeps its state.`).join("\n")}\n`).join("\n"),
        "sales.csv": `day,region,product,units\n${range(220, (n) => `2026-03-${pad((n % 31) + 1)},${pick(["north", "south", "east", "west"], n * 3 + (n >> 3))},p${(n * 7) % 15},${(n * 13) % 40 + 1}`).join("\n")}\n`,
        "stock.csv": `product,stock\n${range(15, (n) => `Product ${n + 1},${stock(n) + (n % 4 === 1 ? 3 : 0)}`).join("\n")}\n`,
        "members.csv": `name,city,since\n${range(60, (n) => `Member ${n + 1},${pick(CITIES, n * 3)},${2000 + ((n * 7) % 26)}`).join("\n")}\n`,
        "incidents.txt": `${range(8, (n) => `${pad((n * 5 + 2) % 24)}:${pad((n * 17) % 60)} UTC ${pick(MODULES, n * 4)} was down`).join("\n")}\n`,
    };
}

function source(name, n) {
    const todo = (at) => (at % 3 === 0 ? `    // TODO(${pick(PEOPLE, n + at)}): this is slow for many items.\n` : "");
    const part = (at) => `// Part ${at} of ${name}.\nexport function ${name}${at}(items) {\n${todo(n + at)}    return items.filter((item) => item.${name} > ${at * n}).map((item) => item.value * ${at + 1});\n}\n`;
    const imported = [pick(MODULES, n * 5 + 3), pick(MODULES, n * 3 + 1)].filter((other) => other !== name);
    return `${[...new Set(imported)].map((other) => `import * as ${other} from "../${pick(["core", "pages", "jobs"], MODULES.indexOf(other))}/${other}.js";`).join("\n")}\n\n${range(3 + (n % 4), part).join("\n")}`;
}

function service(name, n) {
    return `${JSON.stringify({ name, port: 8000 + n * 11, replicas: (n % 3) + 1, timeout: n % 2 ? 30 : 45, tags: [pick(CITIES, n).toLowerCase(), "v2"] }, null, 2)}\n`;
}

function log(lines, seed) {
    const level = (n) => ((n * seed) % 17 === 3 ? "ERROR" : (n * seed) % 7 === 1 ? "WARN" : "INFO");
    return range(lines, (n) => `2026-03-${pad((n % 28) + 1)}T10:${pad(n % 60)}:00Z ${level(n)} ${pick(MODULES, n * seed)}: request ${n * seed} took ${(n * seed * 13) % 997} ms\n`).join("");
}

function manual(n) {
    return `# Manual, part ${n + 1}\n\n${range(4, (m) => `## ${pick(["Before you begin", "The first step", "What can go wrong", "Where to ask", "All options"], n + m)}\n\n${range(5, (k) => `Take ${pick(MODULES, n + m * k)} and ${pick(MODULES, n * k + m)} together, and look at what ${pick(PEOPLE, k + n)} has written about them.`).join(" ")}\n`).join("\n")}`;
}

function words(language, n) {
    const kept = range(60, (m) => m).filter((m) => n === 0 || (m * (n + 4)) % 11 !== 5);
    return `${JSON.stringify(Object.fromEntries(kept.map((m) => [`${pick(MODULES, m)}.label${m}`, `${language} text for ${pick(MODULES, m)} ${m}`])), null, 2)}\n`;
}

function stock(n) {
    return ((n * 37) % 90) + 5;
}

export function database() {
    const insert = (table, rows) => `INSERT INTO ${table} VALUES ${rows.map((row) => `(${row.map((value) => (typeof value === "number" ? value : `'${value}'`)).join(", ")})`).join(", ")};`;
    return [
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);",
        "CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, price INTEGER, stock INTEGER);",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, product_id INTEGER, units INTEGER, day TEXT);",
        "CREATE TABLE returns (id INTEGER PRIMARY KEY, order_id INTEGER, reason TEXT);",
        insert("customers", range(40, (n) => [n + 1, n < 6 ? PEOPLE[n] : `Customer ${n + 1}`, pick(CITIES, n * 3)])),
        insert("products", range(15, (n) => [n + 1, `Product ${n + 1}`, (n * 7) % 50 + 10, stock(n)])),
        insert("orders", range(240, (n) => [n + 1, ((n * 11) % 37) + 1, ((n * 7) % 15) + 1, (n % 5) + 1, `2026-0${(n % 6) + 1}-${pad((n % 28) + 1)}`])),
        insert("returns", range(18, (n) => [n + 1, n * 13 + 1, pick(["broken", "late", "wrong"], n)])),
    ].join("\n");
}

// Entities and relations as the memory server keeps them.
export function graph() {
    const people = [...PEOPLE, ...range(24, (n) => `Person ${n + 1}`)];
    const entities = people.map((name, n) => ({ type: "entity", name, entityType: "person", observations: [`works in the ${pick(["red", "blue", "green"], n)} team`, `lives in ${pick(CITIES, n * 3)}`] }));
    const relation = (n) => ({ type: "relation", from: people[n], to: people[(n * 7 + 3) % 30], relationType: n % 3 === 0 ? "advises" : "knows" });
    return [...entities, ...range(30, (n) => n).filter((n) => n % 5 !== 4).map(relation)];
}

// Forty commits in the language of `git fast-import`, a day apart, and a branch beside them.
export function commits() {
    const data = (text) => `data ${Buffer.byteLength(text)}\n${text}\n`;
    const commit = (branch, n, from, message, files) => {
        const who = `${pick(PEOPLE, n * n)} <${pick(PEOPLE, n * n).toLowerCase()}@example.com> ${1767261600 + n * 86400} +0000`;
        const changes = files.map(([name, text]) => `M 100644 inline ${name}\n${data(text)}`).join("");
        return `commit refs/heads/${branch}\nmark :${n}\nauthor ${who}\ncommitter ${who}\n${data(message)}${from ? `from :${from}\n` : ""}${changes}\n`;
    };
    const module = (name, n) => [`src/${name}.js`, `${range(6 + (n % 9), (line) => `export const ${name}${line} = ${line * n};`).join("\n")}\n`];
    const touched = (n) => [module(pick(MODULES, n * 5), n), ...(n % 4 === 0 ? [module("prices", n)] : []), ...(n % 8 === 0 ? [["version.txt", `1.${n / 8}\n`]] : [])];
    const message = (n) => `${pick(["feat", "fix", "docs", "fix", "chore"], n)}: change ${pick(MODULES, n * 5)} (${n})`;
    const main = range(40, (n) => commit("main", n + 1, n, message(n + 1), touched(n + 1)));
    const beside = range(3, (n) => commit("next", n + 41, n === 0 ? 40 : n + 40, `feat: try ${MODULES[n]} again`, [module(MODULES[n], n + 60), [`try-${n}.md`, "A try.\n"]]));
    return [...main, ...beside].join("");
}
