//! Tables: CSV, TSV, and rows between pipes.

use super::{
    super::page::{Page, cost, count, counted, foreign},
    Lines,
};

/// At least this many lines must agree in the number of their fields.
const LEAST: usize = 4;
const NAME: usize = 40;
const COLUMNS: usize = 40;

#[derive(Debug)]
pub(super) struct Columns {
    kind: &'static str,
    names: Vec<String>,
    /// The line of the first row.
    first_row: usize,
}

/// The columns, if all lines at the beginning have as many fields as the first.
pub(super) fn columns(probe: &[&str]) -> Option<Columns> {
    // The last line may have been cut, and the end of a text is often blank.
    let lines: Vec<&str> = probe.iter().copied().take_while(|line| !line.is_empty()).collect();
    if lines.len() < LEAST {
        return None;
    }
    if lines[0].starts_with('|') {
        return pipes(&lines);
    }
    let separated = |(kind, mark, least): (&'static str, char, usize)| {
        let names = fields(lines[0], mark);
        let is_header = names.iter().all(|name| !name.trim().is_empty() && name.len() < 80);
        let agree = || lines.iter().all(|line| fields(line, mark).len() == names.len());
        (names.len() >= least && is_header && agree()).then_some(Columns { kind, names, first_row: 2 })
    };
    [("TSV", '\t', 2), ("CSV", ',', 3), ("CSV with semicolons", ';', 3)].into_iter().find_map(separated)
}

fn pipes(lines: &[&str]) -> Option<Columns> {
    let is_rule = |line: &str| line.contains("--") && line.chars().all(|char| "|-: ".contains(char));
    let names = fields(lines[0].trim().trim_matches('|'), '|');
    let is_table = is_rule(lines[1]) && lines.iter().all(|line| line.starts_with('|'));
    is_table.then_some(Columns { kind: "table", names, first_row: 3 })
}

/// The fields of a line; a quoted one may contain the mark.
fn fields(line: &str, mark: char) -> Vec<String> {
    let (mut all, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    for char in line.chars() {
        match char {
            '"' => is_quoted = !is_quoted,
            _ if char == mark && !is_quoted => all.push(std::mem::take(&mut field)),
            _ => field.push(char),
        }
    }
    all.push(field);
    all
}

pub(super) fn write(page: &mut Page, columns: &Columns, lines: &Lines<'_>, size: &str) {
    let rows = (lines.count + 1).saturating_sub(columns.first_row);
    page.line(&format!(
        "{}, {size}, {}, lines {}-{}",
        columns.kind,
        counted(rows, "row", "rows"),
        columns.first_row,
        count(lines.count)
    ));
    let names: Vec<String> =
        columns.names.iter().take(COLUMNS).map(|name| foreign(name.trim(), NAME)).collect();
    let more = if columns.names.len() > COLUMNS { ", …" } else { "" };
    page.line(&format!("{} columns: {}{more}", columns.names.len(), names.join(", ")));
    let mut places = vec![columns.first_row, columns.first_row + rows / 2, lines.count];
    places.dedup();
    let room = page.left() / places.len();
    for place in places {
        let Some(line) = lines.get(place) else { continue };
        let row = |limit| format!("{place}| {}", foreign(line, limit));
        if let Some(row) = [400, 200, 100, 40].into_iter().map(row).find(|row| cost(row) <= room) {
            page.line(&row);
        }
    }
}
