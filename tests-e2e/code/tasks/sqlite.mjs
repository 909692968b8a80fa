// Tasks with the database of a shop. The server prints rows as Python does: scripts have SQLite make JSON of them.

import { call, parsed, run, script } from "../play.mjs";
import { FOLDER } from "../world.mjs";
import { rows } from "./heads.mjs";

const ask = (query) => call("sqlite__read_query", { query });
const change = (query) => call("sqlite__write_query", { query });
const TOTALS = "SELECT c.name, SUM(o.units * p.price) AS total FROM orders o JOIN customers c ON c.id = o.customer_id JOIN products p ON p.id = o.product_id GROUP BY c.id ORDER BY total DESC, c.id";
const LATE = "SELECT p.name, COUNT(*) AS n FROM returns r JOIN orders o ON o.id = r.order_id JOIN products p ON p.id = o.product_id WHERE r.reason = 'late' GROUP BY p.id ORDER BY n DESC, p.id LIMIT 3";
const csv = (found) => `name,total\n${found.map(({ name, total }) => `${name},${total}\n`).join("")}`;
const members = (text) => text.trim().split("\n").slice(1).map((line) => line.split(","));

export const SQLITE = [
    {
        name: "the rows of every table",
        expected: (world) => Object.fromEntries(["customers", "products", "orders", "returns"].map((table) => [table, world.rows(`SELECT COUNT(*) AS n FROM ${table}`)[0].n])),
        *direct() {
            const tables = rows((yield [call("sqlite__list_tables", {})])[0]).map(({ name }) => name);
            const [found] = yield [ask(tables.map((table) => `SELECT '${table}' AS name, COUNT(*) AS n FROM ${table}`).join(" UNION ALL "))];
            return Object.fromEntries(rows(found).map(({ name, n }) => [name, n]));
        },
        code: script`
            const counts = {};
            for (const [, table] of (await tools.sqlite.list_tables({})).matchAll(/'name': '(\w+)'/g)) {
              const text = await tools.sqlite.read_query({ query: "SELECT COUNT(*) AS n FROM " + table });
              counts[table] = Number(text.match(/\d+/)[0]);
            }
            return counts;
        `,
    },
    {
        name: "every customer into the memory graph",
        expected: (world) => world.rows("SELECT * FROM customers").length,
        effect: (world) => {
            const known = new Map(world.graph().entities.filter(({ entityType }) => entityType === "customer").map(({ name, observations }) => [name, observations[0]]));
            // The memory has six people of the same name, who stay what they are.
            return world.rows("SELECT * FROM customers").every(({ name, city }) => known.get(`${name} (customer)`) === `lives in ${city}`);
        },
        *direct() {
            const found = rows((yield [ask("SELECT name, city FROM customers")])[0]);
            yield [call("memory__create_entities", { entities: found.map(({ name, city }) => ({ name: `${name} (customer)`, entityType: "customer", observations: [`lives in ${city}`] })) })];
            return found.length;
        },
        code: script`
            const text = await tools.sqlite.read_query({ query: "SELECT json_group_array(json_object('name', name, 'city', city)) FROM customers" });
            const customers = JSON.parse(text.slice(text.indexOf("'[") + 1, text.lastIndexOf("]'") + 1));
            await tools.memory.create_entities({
              entities: customers.map(({ name, city }) => ({ name: name + " (customer)", entityType: "customer", observations: ["lives in " + city] })),
            });
            return customers.length;
        `,
    },
    {
        name: "one question that SQL answers",
        expected: (world) => world.rows(`${TOTALS} LIMIT 1`)[0].name,
        *direct() {
            return rows((yield [ask(`${TOTALS} LIMIT 1`)])[0])[0].name;
        },
        *code() {
            const [text] = yield [run(`return await tools.sqlite.read_query({ query: "${TOTALS} LIMIT 1" });`)];
            return rows(text)[0].name;
        },
    },
    {
        name: "a CSV of 60 rows into a new table",
        expected: () => 60,
        effect: (world) => JSON.stringify(world.rows("SELECT name, city, since FROM members ORDER BY rowid").map(({ name, city, since }) => [name, city, String(since)])) === JSON.stringify(members(world.text("members.csv"))),
        *direct() {
            const [text] = yield [call("files__read_text_file", { path: `${FOLDER}/members.csv` }), call("sqlite__create_table", { query: "CREATE TABLE members (name TEXT, city TEXT, since INTEGER)" })];
            const values = members(text).map(([name, city, since]) => `('${name}', '${city}', ${since})`);
            yield [change(`INSERT INTO members VALUES ${values.join(", ")}`)];
            return values.length;
        },
        code: script`
            const text = await tools.files.read_text_file({ path: "/home/me/desk/members.csv" });
            await tools.sqlite.create_table({ query: "CREATE TABLE members (name TEXT, city TEXT, since INTEGER)" });
            const values = text.trim().split("\n").slice(1).map((line) => {
              const [name, city, since] = line.split(",");
              return "('" + name + "', '" + city + "', " + since + ")";
            });
            await tools.sqlite.write_query({ query: "INSERT INTO members VALUES " + values.join(", ") });
            return values.length;
        `,
    },
    {
        name: "the columns of four tables that name another table",
        expected: (world) => ["orders", "returns"].flatMap((table) => world.rows(`SELECT name FROM pragma_table_info('${table}') WHERE name LIKE '%\\_id' ESCAPE '\\'`).map(({ name }) => `${table}.${name}`)),
        *direct() {
            const tables = rows((yield [call("sqlite__list_tables", {})])[0]).map(({ name }) => name);
            const texts = yield tables.map((table_name) => call("sqlite__describe_table", { table_name }));
            return texts.flatMap((text, at) => rows(text).filter(({ name }) => name.endsWith("_id")).map(({ name }) => `${tables[at]}.${name}`)).sort();
        },
        code: script`
            const found = [];
            for (const [, table_name] of (await tools.sqlite.list_tables({})).matchAll(/'name': '(\w+)'/g)) {
              const text = await tools.sqlite.describe_table({ table_name });
              for (const [, column] of text.matchAll(/'name': '(\w+_id)'/g)) found.push(table_name + "." + column);
            }
            return found.sort();
        `,
    },
    {
        name: "a query as a CSV file",
        expected: () => "written",
        effect: (world) => world.text("totals.csv") === csv(world.rows(TOTALS)),
        *direct() {
            const found = rows((yield [ask(TOTALS)])[0]);
            yield [call("files__write_file", { path: `${FOLDER}/totals.csv`, content: csv(found) })];
            return "written";
        },
        code: script`
            const text = await tools.sqlite.read_query({ query: "SELECT c.name, SUM(o.units * p.price) AS total FROM orders o JOIN customers c ON c.id = o.customer_id JOIN products p ON p.id = o.product_id GROUP BY c.id ORDER BY total DESC, c.id" });
            const lines = [...text.matchAll(/'name': '(.+?)', 'total': (\d+)/g)].map(([, name, total]) => name + "," + total + "\n");
            await tools.files.write_file({ path: "/home/me/desk/totals.csv", content: "name,total\n" + lines.join("") });
            return "written";
        `,
    },
    {
        name: "where a stock list and the database differ, and mend it",
        expected: (world) => differing(world).map(([name]) => name),
        effect: (world) => differing(world).length === 0,
        *direct() {
            const [list, found] = yield [call("files__read_text_file", { path: `${FOLDER}/stock.csv` }), ask("SELECT name, stock FROM products")];
            const stock = new Map(rows(found).map(({ name, stock }) => [name, stock]));
            const wrong = list.trim().split("\n").slice(1).map((line) => line.split(",")).filter(([name, counted]) => stock.get(name) !== Number(counted));
            yield wrong.map(([name, counted]) => change(`UPDATE products SET stock = ${counted} WHERE name = '${name}'`));
            return wrong.map(([name]) => name);
        },
        code: script`
            const [list, products] = await Promise.all([
              tools.files.read_text_file({ path: "/home/me/desk/stock.csv" }),
              tools.sqlite.read_query({ query: "SELECT name, stock FROM products" }),
            ]);
            const changed = [];
            for (const line of list.trim().split("\n").slice(1)) {
              const [name, stock] = line.split(",");
              if (products.includes("{'name': '" + name + "', 'stock': " + stock + "}")) continue;
              await tools.sqlite.write_query({ query: "UPDATE products SET stock = " + stock + " WHERE name = '" + name + "'" });
              changed.push(name);
            }
            return changed;
        `,
    },
    {
        name: "a question to tables that the model has to look at first",
        expected: (world) => world.rows(LATE).map(({ name }) => name),
        *direct() {
            const tables = rows((yield [call("sqlite__list_tables", {})])[0]).map(({ name }) => name);
            yield tables.map((table_name) => call("sqlite__describe_table", { table_name }));
            return rows((yield [ask(LATE)])[0]).map(({ name }) => name);
        },
        *code() {
            yield [run(script`
                return await tools.sqlite.read_query({ query: "SELECT sql FROM sqlite_master" });
            `)];
            const [text] = yield [run(`return await tools.sqlite.read_query({ query: "${LATE}" });`)];
            return rows(text).map(({ name }) => name);
        },
    },
    {
        name: "the same, with a first script that takes rows for JSON",
        expected: (world) => world.rows(LATE).map(({ name }) => name),
        *direct() {
            return rows((yield [ask(LATE)])[0]).map(({ name }) => name);
        },
        *code() {
            yield [run(`const rows = await tools.sqlite.read_query({ query: "${LATE}" });\nreturn rows.map((row) => row.name);`)];
            const [text] = yield [run(`const rows = await tools.sqlite.read_query({ query: "${LATE}" });\nreturn [...rows.matchAll(/'name': '(.+?)'/g)].map((match) => match[1]);`)];
            return parsed(text);
        },
    },
];

function differing(world) {
    const stock = new Map(world.rows("SELECT name, stock FROM products").map(({ name, stock }) => [name, String(stock)]));
    return world.text("stock.csv").trim().split("\n").slice(1).map((line) => line.split(",")).filter(([name, counted]) => stock.get(name) !== counted);
}
