//! Outlines of results in the forms of real servers.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{check, snapshot, *};

fn shown(name: &str, kind: Kind, text: &str) {
    let outline = check(text, OUTLINE_TOKENS);
    assert_eq!(outline.kind, kind);
    let tokens = format!("({} tokens instead of {})", estimate(&outline.text), outline.whole_tokens);
    snapshot(name, &format!("{}\n{tokens}", outline.text));
}

/// The answer to a search for issues.
pub(super) fn issues(count: usize) -> Value {
    let issue = |n: usize| {
        let name = |l: usize| ["bug", "feature", "docs"][(n + l) % 3];
        let labels: Vec<Value> =
            (0..n % 4).map(|l| json!({"name": name(l), "color": format!("ff00{l}{l}")})).collect();
        json!({
            "id": 1000 + n, "title": format!("Crash number {n} when a file is saved"),
            "state": if n.is_multiple_of(3) { "open" } else { "closed" },
            "created_at": format!("2025-{:02}-{:02}T10:00:00Z", 1 + n % 12, 1 + n % 28),
            "user": {"login": format!("user{}", n % 90), "id": n * 7 % 9999, "url": format!("https://example.com/u/{n}")},
            "labels": labels, "comments": n % 41, "score": f64::from(u32::try_from(n).unwrap()) / 7.0,
            "assignee": if n.is_multiple_of(3) { json!({"login": "amy"}) } else { Value::Null },
            "body": "Steps to reproduce the crash, one after the other. ".repeat(1 + n % 9),
        })
    };
    json!({"total_count": count, "incomplete_results": false, "items": (0..count).map(issue).collect::<Vec<_>>()})
}

#[test]
fn json_rows_have_paths_counts_ranges_and_samples() {
    shown("json_rows", Kind::Json, &issues(600).to_string());
}

#[test]
fn json_lines_are_rows() {
    let lines = (0..500).fold(String::new(), |mut out, n| {
        let level = ["info", "warn"][usize::from(n % 9 == 0)];
        let _ = writeln!(
            out,
            "{}",
            json!({"ts": 1_700_000_000 + n, "level": level, "msg": format!("request {n}")})
        );
        out
    });
    shown("json_lines", Kind::JsonLines, &lines);
}

#[test]
fn a_map_is_shown_by_its_members() {
    let packages: serde_json::Map<String, Value> = (0..300)
        .map(|n| {
            (
                format!("node_modules/p{n}"),
                json!({"version": format!("1.{n}.0"), "dev": n % 2 < 1, "requires": {"a": "^1"}}),
            )
        })
        .collect();
    shown(
        "json_map",
        Kind::Json,
        &json!({"name": "app", "lockfileVersion": 3, "packages": packages}).to_string(),
    );
}

#[test]
fn an_object_of_settings_shows_its_values() {
    let section = |n: usize| json!({"enabled": n.is_multiple_of(2), "path": format!("/srv/{n}"), "limits": {"cpu": n, "notes": "x".repeat(300)}});
    let all: serde_json::Map<String, Value> = ["web", "db", "cache", "queue"]
        .iter()
        .enumerate()
        .map(|(n, name)| ((*name).to_owned(), section(n)))
        .collect();
    shown(
        "json_object",
        Kind::Json,
        &json!({"version": "2.1", "services": all, "tags": ["a", "b"]}).to_string(),
    );
}

#[test]
fn a_tree_of_files_as_json_is_counted() {
    let file = |n: usize| json!({"name": format!("f{n}.{}", ["rs", "md", "toml"][n % 3]), "type": "file"});
    let folder = |name: &str, files: usize| {
        let inner =
            json!({"name": "tests", "type": "directory", "children": (0..3).map(file).collect::<Vec<_>>()});
        let children: Vec<Value> = (0..files).map(file).chain([inner]).collect();
        json!({"name": name, "type": "directory", "children": children})
    };
    let tree = json!([folder("core", 80), folder("web", 40), folder("docs", 9), file(1)]);
    shown("json_tree", Kind::Json, &serde_json::to_string_pretty(&tree).unwrap());
}

#[test]
fn a_text_in_json_is_outlined_itself() {
    let page = "# Guide\n\nWords.\n\n## Install\n\nMore words.\n\n## Use\n\nEven more words.\n\n".repeat(20);
    shown("json_text", Kind::Json, &json!({"url": "https://example.com", "content": page}).to_string());
}

#[test]
fn markdown_shows_its_headings() {
    let mut page = "# Handbook\n\nIntroduction.\n\n".to_owned();
    for part in 1..=9 {
        let _ = write!(page, "## Part {part}\n\n{}\n\n", "Some words of the part. ".repeat(20));
        for section in 1..=9 {
            let _ = write!(page, "### Section {part}.{section}\n\nText.\n\n```sh\n# no heading\n```\n\n");
        }
    }
    shown("markdown", Kind::Markdown, &page);
}

#[test]
fn html_shows_its_title_and_headings() {
    let mut page = "<!DOCTYPE html>\n<html><head><title>The  Guide</title></head>\n<body>\n<h1 class=\"x\">The <b>Guide</b></h1>\n".to_owned();
    for part in 1..=12 {
        let _ =
            write!(page, "<h2>Part {part}</h2>\n<p>{}<a href=\"/x\">more</a></p>\n", "Words. ".repeat(60));
    }
    shown("html", Kind::Html, &page);
}

#[test]
fn a_log_shows_its_levels_and_both_ends() {
    let log = (0..3000).fold(String::new(), |mut out, n| {
        let level = if n % 50 == 7 { "ERROR" } else { "INFO" };
        let _ = writeln!(
            out,
            "2025-11-01T10:{:02}:{:02}Z {level} worker-{} request {n} took {} ms",
            n / 60 % 60,
            n % 60,
            n % 8,
            n % 900
        );
        out
    });
    shown("log", Kind::Text, &log);
}

#[test]
fn a_table_shows_columns_and_rows() {
    let csv = (0..2000).fold("id,name,city,amount\n".to_owned(), |mut out, n| {
        let _ = writeln!(out, "{n},\"Doe, {n}\",{},{}.50", ["Rome", "Oslo"][n % 2], n * 3);
        out
    });
    shown("csv", Kind::Table, &csv);
}

#[test]
fn a_diff_shows_its_files() {
    let diff = (0..30).fold("Diff with main:\n".to_owned(), |mut out, n| {
        let _ = write!(out, "diff --git a/src/f{n}.rs b/src/f{n}.rs\nindex 1..2 100644\n--- a/src/f{n}.rs\n+++ b/src/f{n}.rs\n");
        let _ = write!(out, "@@ -1,3 +1,4 @@\n one\n-two\n--- three\n+2\n+3\n+4\n");
        out
    });
    shown("diff", Kind::Diff, &diff);
}

#[test]
fn lists_of_files_are_counted() {
    let marked = (0..200).fold(String::new(), |mut out, n| {
        let _ = writeln!(
            out,
            "{} entry-{n}{}",
            if n % 9 == 0 { "[DIR]" } else { "[FILE]" },
            if n % 9 == 0 { "" } else { ".md" }
        );
        out
    });
    shown("list_marked", Kind::Listing, &marked);
    let paths = (0..400).fold(String::new(), |mut out, n| {
        let _ = writeln!(
            out,
            "/home/me/project/{}/src/f{n}.{}",
            ["api", "web", "cli"][n % 3],
            ["ts", "css"][n % 2]
        );
        out
    });
    shown("list_paths", Kind::Listing, &paths);
}

#[test]
fn source_text_is_plain_text() {
    let program = "#!/bin/sh\n# Builds it.\nset -e\n\n# The folder.\ncd \"$1\"\nmake, or, not\n".repeat(60);
    shown("plain", Kind::Text, &program);
    shown("one_line", Kind::Text, &"iVBORw0KGgoAAAANSUhEUgAAABQ".repeat(5000));
}
