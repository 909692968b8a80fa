// Tasks with times and sums, with several servers, and those in which the model has to judge.

import { REVIEWS } from "../contents.mjs";
import { call, run, script } from "../play.mjs";
import { FOLDER } from "../world.mjs";
import { commits, rows } from "./heads.mjs";

// None of them has summer time.
const ZONES = ["Asia/Tokyo", "Asia/Kolkata", "America/Lima", "Africa/Nairobi", "Asia/Dubai", "Asia/Singapore", "Asia/Kathmandu", "America/Bogota", "Africa/Lagos", "Pacific/Honolulu"];
const convert = (source_timezone, time, target_timezone) => call("time__convert_time", { source_timezone, time, target_timezone });
const targetOf = (text) => JSON.parse(text).target.datetime.slice(11, 16);
const NUMBERS = [17, 4, 23, 8, 15, 42, 16, 99];
const sumOf = (text) => Number(text.match(/is (-?\d+)/)[1]);
const SINCE = "2026-02-01T00:00:00Z";
const log = () => call("git__git_log", { repo_path: `${FOLDER}/repo`, max_count: 100, start_timestamp: SINCE });
const notes = (messages) => ["feat", "fix"].map((kind) => `## ${kind}\n${messages.filter((message) => message.startsWith(`${kind}: `)).map((message) => `- ${message.slice(kind.length + 2)}\n`).join("")}`).join("\n");
const incidents = (text) => text.trim().split("\n").map((line) => [line.slice(0, 5), line.slice(10)]);
const reviews = REVIEWS.map((_, n) => `${FOLDER}/reviews/${n + 1}.txt`);
const complaining = REVIEWS.flatMap(([, complains], n) => (complains ? [n + 1] : []));
const ORDERS = "SELECT c.name, COUNT(*) AS n FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.id HAVING n >= 6";

export const MIXED = [
    {
        name: "convert ten times",
        expected: () => ZONES.map((zone) => clock("12:00", zone, "UTC")),
        *direct() {
            return (yield ZONES.map((zone) => convert(zone, "12:00", "UTC"))).map(targetOf);
        },
        code: script`
            const zones = ["Asia/Tokyo", "Asia/Kolkata", "America/Lima", "Africa/Nairobi", "Asia/Dubai", "Asia/Singapore", "Asia/Kathmandu", "America/Bogota", "Africa/Lagos", "Pacific/Honolulu"];
            return await Promise.all(zones.map(async (source_timezone) => {
              const { target } = await tools.time.convert_time({ source_timezone, time: "12:00", target_timezone: "UTC" });
              return target.datetime.slice(11, 16);
            }));
        `,
    },
    {
        name: "convert one time",
        expected: () => clock("16:30", "Asia/Tokyo", "America/Lima"),
        *direct() {
            return targetOf((yield [convert("Asia/Tokyo", "16:30", "America/Lima")])[0]);
        },
        *code() {
            return targetOf((yield [run('return await tools.time.convert_time({ source_timezone: "Asia/Tokyo", time: "16:30", target_timezone: "America/Lima" });')])[0]);
        },
    },
    {
        name: "the incidents of a file in Tokyo's time",
        expected: (world) => incidents(world.text("incidents.txt")).map(([time, what]) => `${clock(time, "UTC", "Asia/Tokyo")} ${what}`),
        *direct() {
            const found = incidents((yield [call("files__read_text_file", { path: `${FOLDER}/incidents.txt` })])[0]);
            const times = yield found.map(([time]) => convert("UTC", time, "Asia/Tokyo"));
            return found.map(([, what], at) => `${targetOf(times[at])} ${what}`);
        },
        code: script`
            const text = await tools.files.read_text_file({ path: "/home/me/desk/incidents.txt" });
            return await Promise.all(text.trim().split("\n").map(async (line) => {
              const { target } = await tools.time.convert_time({ source_timezone: "UTC", time: line.slice(0, 5), target_timezone: "Asia/Tokyo" });
              return target.datetime.slice(11, 16) + " " + line.slice(10);
            }));
        `,
    },
    {
        name: "seven sums, each of the one before",
        expected: () => NUMBERS.reduce((sum, each) => sum + each),
        *direct() {
            let sum = NUMBERS[0];
            for (const b of NUMBERS.slice(1)) sum = sumOf((yield [call("everything__get-sum", { a: sum, b })])[0]);
            return sum;
        },
        code: script`
            const [first, ...others] = [17, 4, 23, 8, 15, 42, 16, 99];
            let sum = first;
            for (const b of others) sum = Number((await tools.everything["get-sum"]({ a: sum, b })).match(/is (-?\d+)/)[1]);
            return sum;
        `,
    },
    {
        name: "one echo",
        expected: () => "Echo: hello",
        *direct() {
            return (yield [call("everything__echo", { message: "hello" })])[0];
        },
        code: 'return await tools.everything.echo({ message: "hello" });',
    },
    {
        name: "the commits since a day into a new table",
        expected: (world) => Number(world.git("rev-list", "--count", `--since=${SINCE}`, "main")),
        effect: (world) => world.rows("SELECT hash, author, message FROM commits ORDER BY rowid").map((row) => Object.values(row).join("|")).join("\n") === world.git("log", `--since=${SINCE}`, "--format=%H|%an|%s"),
        *direct() {
            const [text] = yield [log(), call("sqlite__create_table", { query: "CREATE TABLE commits (hash TEXT, author TEXT, message TEXT)" })];
            const values = commits(text).map(({ hash, author, message }) => `('${hash}', '${author}', '${message}')`);
            yield [call("sqlite__write_query", { query: `INSERT INTO commits VALUES ${values.join(", ")}` })];
            return values.length;
        },
        code: script`
            const log = await tools.git.git_log({ repo_path: "/home/me/desk/repo", max_count: 100, start_timestamp: "2026-02-01T00:00:00Z" });
            const values = [...log.matchAll(/Commit: (\w+)\nAuthor: (.+)\nDate: .+\nMessage: (.+)/g)].map((match) => "('" + match.slice(1).join("', '") + "')");
            await tools.sqlite.create_table({ query: "CREATE TABLE commits (hash TEXT, author TEXT, message TEXT)" });
            await tools.sqlite.write_query({ query: "INSERT INTO commits VALUES " + values.join(", ") });
            return values.length;
        `,
    },
    {
        name: "release notes of the commits since a day",
        expected: () => "written",
        effect: (world) => world.text("notes.md") === notes(world.git("log", `--since=${SINCE}`, "--format=%s").split("\n")),
        *direct() {
            const found = commits((yield [log()])[0]);
            yield [call("files__write_file", { path: `${FOLDER}/notes.md`, content: notes(found.map(({ message }) => message)) })];
            return "written";
        },
        code: script`
            const log = await tools.git.git_log({ repo_path: "/home/me/desk/repo", max_count: 100, start_timestamp: "2026-02-01T00:00:00Z" });
            const messages = [...log.matchAll(/^Message: (\w+): (.+)/gm)];
            const content = ["feat", "fix"].map((kind) =>
              "## " + kind + "\n" + messages.filter((match) => match[1] === kind).map((match) => "- " + match[2] + "\n").join("")).join("\n");
            await tools.files.write_file({ path: "/home/me/desk/notes.md", content });
            return "written";
        `,
    },
    {
        name: "people of the memory with six orders or more",
        expected: (world) => ordering(world.graph(), world.rows(ORDERS)),
        *direct() {
            const [known, found] = yield [call("memory__read_graph", {}), call("sqlite__read_query", { query: ORDERS })];
            return ordering(JSON.parse(known), rows(found));
        },
        code: script`
            const [graph, orders] = await Promise.all([
              tools.memory.read_graph({}),
              tools.sqlite.read_query({ query: "SELECT c.name, COUNT(*) AS n FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.id HAVING n >= 6" }),
            ]);
            const names = new Set([...orders.matchAll(/'name': '(.+?)'/g)].map((match) => match[1]));
            return graph.entities.map((entity) => entity.name).filter((name) => names.has(name)).sort();
        `,
    },
    {
        name: "which of eight reviews complain",
        expected: () => complaining,
        *direct() {
            yield [call("files__read_multiple_files", { paths: reviews })];
            return complaining;
        },
        *code() {
            yield [run(script`
                const paths = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => "/home/me/desk/reviews/" + n + ".txt");
                return await tools.files.read_multiple_files({ paths });
            `)];
            return complaining;
        },
    },
    {
        name: "the same one by one, each judged before the next",
        expected: () => complaining,
        *direct() {
            for (const path of reviews) yield [call("files__read_text_file", { path })];
            return complaining;
        },
        *code() {
            for (const path of reviews) yield [run(`return await tools.files.read_text_file({ path: "${path}" });`)];
            return complaining;
        },
    },
    {
        name: "a note for those who complain",
        expected: () => complaining.length,
        effect: (world) => world.names("notes").join() === complaining.map((n) => `notes/${n}.txt`).join(),
        *direct() {
            yield [call("files__read_multiple_files", { paths: reviews }), call("files__create_directory", { path: `${FOLDER}/notes` })];
            yield complaining.map((n) => call("files__write_file", { path: `${FOLDER}/notes/${n}.txt`, content: "call back" }));
            return complaining.length;
        },
        *code() {
            yield [run(script`
                await tools.files.create_directory({ path: "/home/me/desk/notes" });
                const paths = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => "/home/me/desk/reviews/" + n + ".txt");
                return await tools.files.read_multiple_files({ paths });
            `)];
            yield [run(`for (const n of [${complaining.join(", ")}]) await tools.files.write_file({ path: "${FOLDER}/notes/" + n + ".txt", content: "call back" });`)];
            return complaining.length;
        },
    },
];

function ordering({ entities }, orders) {
    return entities.map(({ name }) => name).filter((name) => orders.some((order) => order.name === name)).sort();
}

// A time of one zone as the clocks of another show it, without a server.
function clock(time, from, to) {
    const [hours, minutes] = time.split(":").map(Number);
    const all = hours * 60 + minutes - offset(from) + offset(to);
    const day = ((all % 1440) + 1440) % 1440;
    return [Math.floor(day / 60), day % 60].map((part) => String(part).padStart(2, "0")).join(":");
}

// Minutes ahead of UTC.
function offset(zone) {
    const name = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" }).formatToParts().find(({ type }) => type === "timeZoneName").value;
    const [, sign, hours, minutes] = name.match(/GMT([+-])(\d+):(\d+)/) ?? [undefined, "+", 0, 0];
    return Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes));
}
