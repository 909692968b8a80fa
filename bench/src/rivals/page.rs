//! The page of the documentation and its pictures, made from the results.

mod columns;
mod faults;
mod plot;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use self::columns::{Column, Topic};
use crate::rivals::results::Results;
use crate::table::number;
use crate::{Outcome, output};

const FILE: &str = "rivals.md";

/// A person's comments on the figures.
const READING: &str = include_str!("../../rivals/reading.txt");

/// One gateway's entry in the results.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
}

impl Entry<'_> {
    fn is_ours(&self) -> bool {
        self.value["ours"] == true
    }

    fn is_measured(&self) -> bool {
        self.value["parts"].as_object().is_some_and(|parts| !parts.is_empty())
    }

    fn title(&self) -> String {
        if self.is_ours() { format!("**{}**", self.name) } else { self.name.to_owned() }
    }
}

/// A figure and the gateway that has it.
type Best<'a> = (f64, &'a str);

pub(crate) fn write(results: &Results, docs: &Path) -> Outcome<()> {
    let whole = results.whole();
    let entries = whole["rivals"].as_object().ok_or("there are no results")?;
    let entries: Vec<Entry<'_>> = entries.iter().map(|(name, value)| Entry { name, value }).collect();
    let pictures = docs.join("pictures");
    fs::create_dir_all(&pictures)?;

    let mut page = introduction(whole, &entries);
    for topic in columns::topics() {
        let column = &topic.columns[topic.pictured];
        page.push_str(&section(&topic, &entries));
        if entries.iter().any(|entry| column.value(entry).is_some()) {
            let file = format!("rivals-{}.svg", topic.name);
            fs::write(pictures.join(&file), plot::bars(&topic, column, &entries))?;
            writeln!(page, "![{}: {}](pictures/{file})\n", topic.title, column.title)?;
        }
    }
    page.push_str(&faults::section(&entries));
    page.push_str(&reading(&entries));
    fs::write(docs.join(FILE), page)?;
    output::show(&docs.join(FILE).display().to_string());
    Ok(())
}

fn introduction(whole: &Value, entries: &[Entry<'_>]) -> String {
    let machine = &whole["machine"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let quick = entries.iter().filter_map(|entry| entry.value["parts"].as_object());
    let quick = quick.flat_map(|parts| parts.values()).any(|part| part["quick"] == true);
    let mut page = format!(
        "# Rivals, side by side\n\n\
         Gateways for MCP, measured by one program on one machine: {}, {} cores, {}, Linux {}; {}.\n",
        text(&machine["processor"]),
        machine["cores"],
        text(&machine["memory"]),
        text(&machine["kernel"]),
        text(&whole["date"]),
    );
    if quick {
        page.push_str(
            "\n**Some figures are of a quick run on a busy machine: a first look, not a verdict.**\n",
        );
    }
    page.push_str(
        "\nEvery server is the same deterministic stub. Ratios are to direct calls of the same rounds, over the same \
         transport; trust them more than times. [bench/README.md](../bench/README.md#rivals) says how each figure is \
         made, and has the command. This page is written by `plugbay-bench rivals page`.\n\n## Gateways\n\n\
         | gateway | version | written in | from | remarks |\n|---|---|---|---|---|\n",
    );
    for entry in entries {
        let value = entry.value;
        let remark = value["note"].as_str().or_else(|| value["absent"].as_str()).unwrap_or_default();
        let version = value["version"].as_str().unwrap_or("–");
        let _ = writeln!(
            page,
            "| {} | {version} | {} | {} | {remark} |",
            entry.title(),
            text(&value["language"]),
            text(&value["source"]),
        );
    }
    page.push('\n');
    page
}

/// A table, sorted by the pictured column with the best first.
fn section(topic: &Topic, entries: &[Entry<'_>]) -> String {
    let mut page = format!("## {}\n\n{}\n\n", topic.title, topic.about);
    let titles: Vec<&str> = topic.columns.iter().map(|column| &*column.title).collect();
    let _ = writeln!(page, "| gateway | {} |\n|---|{}", titles.join(" | "), "---|".repeat(titles.len()));
    let pictured = &topic.columns[topic.pictured];
    let mut rows: Vec<(Option<f64>, String)> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.is_measured()) {
        let cells: Vec<String> = topic.columns.iter().map(|column| column.cell(entry)).collect();
        if cells.iter().any(|cell| cell != columns::NOTHING) {
            let key = pictured.value(entry).map(|value| pictured.cost(value));
            rows.push((key, format!("| {} | {} |\n", entry.title(), cells.join(" | "))));
        }
    }
    rows.sort_by(|(a, _), (b, _)| a.unwrap_or(f64::INFINITY).total_cmp(&b.unwrap_or(f64::INFINITY)));
    page.extend(rows.into_iter().map(|(_, row)| row));
    page.push('\n');
    page
}

/// The columns in which another gateway is first, with a person's comments.
fn reading(entries: &[Entry<'_>]) -> String {
    let mut page = "## Reading\n\n".to_owned();
    let topics = columns::topics();
    let columns = topics.iter().flat_map(|topic| topic.columns.iter().map(move |column| (topic, column)));
    let compared: Vec<_> = columns
        .filter_map(|(topic, column)| {
            Some((topic, column, best(column, entries, true)?, best(column, entries, false)?))
        })
        .collect();
    let behind: Vec<String> = compared.iter().filter_map(|compared| beaten(*compared)).collect();
    let _ = writeln!(
        page,
        "plugbay, in one of its modes, is first in {} of the {} columns in which it and another gateway have a figure. \
         In the others:\n",
        compared.len() - behind.len(),
        compared.len()
    );
    for line in behind {
        let _ = writeln!(page, "- {line}");
    }
    page.push('\n');
    page.push_str(READING);
    page
}

/// The best figure of ours or of the others, with its gateway.
fn best<'a>(column: &Column, entries: &[Entry<'a>], ours: bool) -> Option<Best<'a>> {
    let entries = entries.iter().filter(|entry| entry.is_ours() == ours && entry.is_measured());
    let figures = entries.filter_map(|entry| Some((column.value(entry)?, entry.name)));
    figures.min_by(|(a, _), (b, _)| column.cost(*a).total_cmp(&column.cost(*b)))
}

/// A line that says so if another gateway is first.
fn beaten((topic, column, (our, _), (their, name)): (&Topic, &Column, Best<'_>, Best<'_>)) -> Option<String> {
    let shown = |value| column.shown(Some(value));
    (column.cost(their) < column.cost(our)).then(|| {
        format!("{}, {}: {name} {}, plugbay {}", topic.title, column.title, shown(their), shown(our))
    })
}

/// A number in the form of the tables.
pub(super) fn figure(value: Option<f64>) -> String {
    match value {
        Some(value) if value >= 10_000.0 => format!("{value:.0}"),
        other => number(other),
    }
}
