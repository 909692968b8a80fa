//! The tables of the page, and the place of each figure in the results.

use serde_json::Value;

use super::{Entry, figure};

/// The content of a cell without a figure.
pub(super) const NOTHING: &str = "–";

/// A table.
pub(super) struct Topic {
    /// The name in the file name of its picture.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) columns: Vec<Column>,
    /// The column by which the table is sorted, and which the picture shows.
    pub(super) pictured: usize,
}

pub(super) struct Column {
    pub(super) title: String,
    /// The part of the results, the row in it, and the field in that.
    part: &'static str,
    row: Row,
    field: &'static str,
    scale: f64,
    more_is_better: bool,
}

enum Row {
    /// The part itself instead of a row.
    Whole,
    Case(&'static str),
    Situation(&'static str),
    /// The row with this many servers, before or after many calls.
    Memory(u64, bool),
    Servers(u64),
}

impl Column {
    /// The figure, if it is comparable with others.
    pub(super) fn value(&self, entry: &Entry<'_>) -> Option<f64> {
        let row = self.row_of(entry)?;
        let whole = self.field != "listed_ms" || !is_incomplete(row);
        whole.then(|| self.figure_in(row)).flatten()
    }

    /// The value for comparisons: lower is better.
    pub(super) fn cost(&self, value: f64) -> f64 {
        if self.more_is_better { -value } else { value }
    }

    pub(super) fn cell(&self, entry: &Entry<'_>) -> String {
        let row = self.row_of(entry);
        if row.is_some_and(|row| row["failed"].is_string()) {
            return "failed".to_owned();
        }
        let mut cell = self.shown(row.and_then(|row| self.figure_in(row)));
        if self.field == "listed_ms" && row.is_some_and(is_incomplete) {
            cell.push_str(" *");
        }
        cell
    }

    fn figure_in(&self, row: &Value) -> Option<f64> {
        Some(row[self.field].as_f64()? * self.scale)
    }

    pub(super) fn shown(&self, value: Option<f64>) -> String {
        if self.more_is_better {
            return value.map_or_else(|| NOTHING.to_owned(), |value| format!("{value:.0} %"));
        }
        figure(value)
    }

    fn row_of<'a>(&self, entry: &Entry<'a>) -> Option<&'a Value> {
        let part = &entry.value["parts"][self.part];
        let is_row = |row: &&Value| match self.row {
            Row::Whole => false,
            // A failed case has one row, without a route.
            Row::Case(case) => row["case"] == case && (row["route"].is_null() || row["route"] == entry.name),
            Row::Situation(situation) => row["situation"] == situation,
            Row::Memory(servers, after) => {
                let failed = row["failed"].is_string();
                row["servers"] == servers && (failed || (row["after_calls"] != 0) == after)
            }
            Row::Servers(servers) => row["servers"] == servers,
        };
        match self.row {
            Row::Whole => Some(part),
            _ => part["rows"].as_array()?.iter().find(is_row),
        }
    }
}

/// Whether a list has fewer tools than it should.
fn is_incomplete(row: &Value) -> bool {
    let count = |key: &str| row[key].as_u64();
    count("tools") < count("expected_tools")
}

const CASES: [&str; 6] = ["1 KB ×1", "1 KB ×32", "100 KB ×1", "100 KB ×32", "5 MB ×1", "5 MB ×4"];

pub(super) fn topics() -> Vec<Topic> {
    let calls = |part: &'static str| -> Vec<Column> {
        let of = |field: &'static str, what: &'static str| {
            CASES.map(move |case| column(format!("{case}, {what}"), part, Row::Case(case), field))
        };
        of("p50_to_direct", "p50").into_iter().chain(of("cpu_us", "CPU µs")).collect()
    };
    let about_calls = "Median time of a call as a multiple of a direct call, and processor time of the gateway per call. \
                       ×32 means 32 calls in flight.";
    vec![
        Topic {
            name: "stdio",
            title: "Calls over stdio",
            about: about_calls,
            columns: calls("stdio"),
            pictured: 8,
        },
        Topic {
            name: "http",
            title: "Calls over HTTP",
            about: about_calls,
            columns: calls("http"),
            pictured: 8,
        },
        start(),
        memory(),
        tokens(),
        search(),
    ]
}

fn start() -> Topic {
    let of = |situation, title: &str, field| {
        column(format!("{title}, ms"), "start", Row::Situation(situation), field)
    };
    Topic {
        name: "start",
        title: "Start",
        about: "From the spawn until the list of tools is answered, with five servers of twenty tools, and until the first \
                call of a working server is. * marks a list without the tools of a server that works; it is not compared.",
        columns: vec![
            of("cold", "cold: list", "listed_ms"),
            of("cold", "cold: call", "called_ms"),
            of("warm", "warm: list", "listed_ms"),
            of("warm", "warm: call", "called_ms"),
            of("one server needs 3 s", "one server needs 3 s: list", "listed_ms"),
            of("one server needs 3 s", "one server needs 3 s: call of another", "called_ms"),
            of("one server never answers", "one never answers: list", "listed_ms"),
            of("one server never answers", "one never answers: call of another", "called_ms"),
        ],
        pictured: 2,
    }
}

fn memory() -> Topic {
    let of = |servers, after, title: &str, field| {
        column(format!("{title}, MB"), "memory", Row::Memory(servers, after), field)
    };
    Topic {
        name: "memory",
        title: "Memory",
        about: "Of the gateway's own processes, without the servers. Anonymous: heap and stacks, without the pages of the \
                program's file, which the system can drop and read again. Private: all pages that no other process has \
                mapped. Proportional: those, and of each shared page the share of one process. After 10,000 calls of 1 KB, or as \
                many as fit into 10 s.",
        columns: vec![
            of(5, false, "5 servers: anonymous", "anonymous_mb"),
            of(5, false, "private", "private_mb"),
            of(5, false, "proportional", "proportional_mb"),
            of(5, true, "after the calls: proportional", "proportional_mb"),
            of(50, false, "50 servers: anonymous", "anonymous_mb"),
            of(50, false, "private", "private_mb"),
            of(50, false, "proportional", "proportional_mb"),
            of(50, true, "after the calls: proportional", "proportional_mb"),
        ],
        pictured: 2,
    }
}

fn tokens() -> Topic {
    let of = |servers, title: &str, field| column(title.to_owned(), "tokens", Row::Servers(servers), field);
    Topic {
        name: "tokens",
        title: "Tokens",
        about: "What a model reads before its first call, in o200k: the definitions in the list, and the instructions. Most \
                gateways that list everything have the same definitions, but for the names.",
        columns: vec![of(5, "100 tools", "total"), of(50, "1,000 tools", "total")],
        pictured: 0,
    }
}

fn search() -> Topic {
    let of = |title: &str, field| column(title.to_owned(), "search", Row::Whole, field);
    let share = |title: &str, field| Column { scale: 100.0, more_is_better: true, ..of(title, field) };
    Topic {
        name: "search",
        title: "Search",
        about: "How often the gateway's own search names the right tool first, and among the first five, in the definitions \
                of 70 real servers with 2,452 tools, for 200 queries; the reply's median length, and the time until it is there.",
        columns: vec![
            share("recall at 1", "recall_at_1"),
            share("recall at 5", "recall_at_5"),
            of("tokens of a reply", "reply_tokens"),
            of("ms", "reply_ms"),
        ],
        pictured: 1,
    }
}

fn column(title: String, part: &'static str, row: Row, field: &'static str) -> Column {
    Column { title, part, row, field, scale: 1.0, more_is_better: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_figure_is_found_by_part_row_and_field() {
        let value = json!({ "parts": {
            "stdio": { "rows": [
                { "case": "1 KB ×1", "route": "direct", "p50_to_direct": 1.0 },
                { "case": "1 KB ×1", "route": "x", "p50_to_direct": 2.5 },
                { "case": "5 MB ×1", "failed": "no" },
            ] },
            "search": { "recall_at_1": 0.5 },
        } });
        let entry = Entry { name: "x", value: &value };
        let topics = topics();
        assert_eq!(topics[0].columns[0].cell(&entry), "2.50");
        assert_eq!(topics[0].columns[4].cell(&entry), "failed");
        assert_eq!(topics[0].columns[1].cell(&entry), NOTHING);
        assert_eq!(topics[5].columns[0].cell(&entry), "50 %");
    }
}
