//! Tables whose columns line up, whatever the width of their characters.

use unicode_width::UnicodeWidthStr;

use super::Style;

const GAP: &str = "  ";
/// Least width of the last flexible column, as long as other columns can be cut.
const NARROW: usize = 24;
/// Least width of any column.
const NARROWEST: usize = 12;

pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    indent: usize,
}

pub(super) struct Column {
    title: &'static str,
    right: bool,
    /// Whether the column may be cut if the terminal is too narrow. The last such column is cut first.
    flexible: bool,
}

pub(super) struct Cell {
    text: String,
    paint: fn(Style, &str) -> String,
}

impl Column {
    pub(super) const fn left(title: &'static str) -> Self {
        Self { title, right: false, flexible: false }
    }

    pub(super) const fn right(title: &'static str) -> Self {
        Self { title, right: true, flexible: false }
    }

    pub(super) const fn flexible(title: &'static str) -> Self {
        Self { title, right: false, flexible: true }
    }
}

impl Cell {
    pub(super) fn painted(text: impl Into<String>, paint: fn(Style, &str) -> String) -> Self {
        Self { text: text.into(), paint }
    }

    /// The cell on its own, outside a table.
    pub(super) fn render(&self, style: Style) -> String {
        (self.paint)(style, &self.text)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::painted(text, |_, text| text.to_owned())
    }
}

impl Table {
    pub(super) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new(), indent: 0 }
    }

    pub(super) fn indented(mut self, indent: usize) -> Self {
        self.indent = indent;
        self
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    pub(super) fn render(&self, style: Style) -> String {
        let widths = self.widths(style);
        let has_titles = self.columns.iter().any(|column| !column.title.is_empty());
        let titles: Vec<Cell> =
            self.columns.iter().map(|column| Cell::painted(column.title, Style::dim)).collect();
        let rows = has_titles.then_some(&titles).into_iter().chain(&self.rows);
        rows.map(|row| self.line(row, &widths, style)).collect()
    }

    fn line(&self, row: &[Cell], widths: &[usize], style: Style) -> String {
        let mut line = " ".repeat(self.indent);
        let mut pending = String::new(); // blanks that are needed only if something follows
        for ((cell, column), width) in row.iter().zip(&self.columns).zip(widths) {
            let text = if column.flexible { cut(&cell.text, *width) } else { cell.text.clone() };
            let blank = " ".repeat(width.saturating_sub(text.width()));
            let painted = (cell.paint)(style, &text);
            if column.right {
                pending.push_str(&blank);
            }
            if !text.is_empty() {
                line.push_str(&pending);
                line.push_str(&painted);
                pending.clear();
            }
            if !column.right {
                pending.push_str(&blank);
            }
            pending.push_str(GAP);
        }
        line.push('\n');
        line
    }

    fn widths(&self, style: Style) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.title.width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        let gaps = GAP.len() * self.columns.len().saturating_sub(1);
        let whole = self.indent + gaps + widths.iter().sum::<usize>();
        let mut excess = style.width.map_or(0, |limit| whole.saturating_sub(limit));
        let flexible: Vec<usize> = (0..widths.len()).filter(|index| self.columns[*index].flexible).collect();
        let last = flexible.last().map(|index| (*index, NARROW));
        let all = flexible.iter().rev().map(|index| (*index, NARROWEST));
        // The last column is cut first, and again if the others cannot be cut further.
        let (others, again): (Vec<_>, Vec<_>) =
            all.partition(|(index, _)| Some(*index) != last.map(|last| last.0));
        for (index, least) in last.into_iter().chain(others).chain(again) {
            let cut = excess.min(widths[index].saturating_sub(least));
            widths[index] -= cut;
            excess -= cut;
        }
        widths
    }
}

/// The start of a text that fits into this many columns.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for char in text.chars() {
        kept.push(char);
        if kept.width() >= width {
            kept.pop();
            break;
        }
    }
    format!("{}…", kept.trim_end())
}

/// A text wrapped between words to this width. A longer word gets its own line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line =
            lines.last_mut().filter(|line| line.is_empty() || line.width() + 1 + word.width() <= width);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => line.extend([" ", word]),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table =
            Table::new(vec![Column::left("NAME"), Column::right("COUNT"), Column::flexible("WHAT")]);
        table.row(vec!["a".into(), "1,000".into(), "short".into()]);
        table.row(vec![
            "日本".into(),
            Cell::painted("7", Style::bad),
            "a sentence that goes on and on".into(),
        ]);
        table.row(vec!["last".into(), "".into(), "".into()]);
        table
    }

    #[test]
    fn columns_line_up_and_nothing_trails() {
        let expected = "\
NAME  COUNT  WHAT
a     1,000  short
日本      7  a sentence that goes on and on
last
";
        assert_eq!(table().render(Style::PLAIN), expected);
    }

    #[test]
    fn a_narrow_terminal_cuts_the_flexible_column_only() {
        let text = table().indented(2).render(Style { colour: false, width: Some(39) });
        assert!(text.contains("\n  日本      7  a sentence that goes on…\n"), "{text}");
        assert!(text.lines().all(|line| line.width() <= 39), "{text}");
    }

    #[test]
    fn several_flexible_columns_share_a_narrow_terminal() {
        let columns = vec![Column::flexible("HOST"), Column::left("MODE"), Column::flexible("WHY")];
        let mut table = Table::new(columns);
        let why = "all tools together are small enough for every turn";
        table.row(vec!["a host with quite a long name".into(), "activate".into(), why.into()]);
        let at = |width| table.render(Style { colour: false, width: Some(width) });
        assert!(
            at(70).contains("a host with quite a long name  activate  all tools together are"),
            "{}",
            at(70)
        );
        for width in [36, 50, 60, 70] {
            assert!(at(width).lines().all(|line| line.width() <= width), "{}", at(width));
        }
    }

    #[test]
    fn colour_does_not_disturb_the_columns() {
        let text = table().render(Style { colour: true, width: None });
        assert!(text.contains("日本      \x1b[1m\x1b[31m7\x1b[0m  a sentence"), "{text:?}");
    }

    #[test]
    fn breaks_between_words() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("extraordinary word", 8), ["extraordinary", "word"]);
        assert_eq!(wrap("", 8), [""]);
    }

    #[test]
    fn cuts_between_characters() {
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 3), "abc");
    }
}
