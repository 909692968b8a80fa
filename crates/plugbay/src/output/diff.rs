//! A unified diff in colours.

use std::fmt::Write;

use super::{Style, clean_line, table::cut};
use crate::commands::setup::Diff;

/// The width of a line in a pipe: some hosts keep their whole file on one line.
const LONGEST_LINE: usize = 160;

/// The file's name, then its changed lines.
pub(super) fn render(diff: &Diff, about: &str, style: Style) -> String {
    let mut text = format!("{}{}\n", style.bold(&clean_line(&diff.file)), style.dim(about));
    for line in diff.text.lines() {
        let shown = cut(&clean_line(line), style.width.unwrap_or(LONGEST_LINE));
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
