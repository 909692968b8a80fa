//! A unified diff in colours.

use std::fmt::Write;

use super::{Style, clean_line, table::cut};
use crate::commands::setup::Diff;

/// Some hosts keep their whole file on one line.
const LONGEST_LINE: usize = 160;

/// The file's name, a line about it, and its changed lines.
pub(super) fn render(diff: &Diff, about: &str, style: Style) -> String {
    let mut text = format!("{}\n", style.bold(&clean_line(&diff.file)));
    if !about.is_empty() {
        let _ = writeln!(text, "{}", style.dim(about));
    }
    for line in diff.text.lines() {
        let shown = cut(&clean_line(line), LONGEST_LINE);
        let painted = match line.chars().next() {
            Some('+') => style.good(&shown),
            Some('-') => style.bad(&shown),
            Some('@') => style.dim(&shown),
            _ => shown,
        };
        let _ = writeln!(text, "{painted}");
    }
    text
}
