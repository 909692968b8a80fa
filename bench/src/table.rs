//! Plain text tables.

pub(crate) struct Table {
    /// Columns from this one on contain numbers, and are aligned to the right.
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(left: usize, head: [&str; N]) -> Self {
        Self { left, rows: vec![head.map(str::to_owned).to_vec()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();

        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column < self.left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// A number with a suitable number of decimals; a dash if there is none.
pub(crate) fn number(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

pub(crate) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{:.0} %", value * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(1, ["case", "µs"]);
        table.row(["a".to_owned(), number(Some(1.0))]);
        table.row(["longer".to_owned(), number(Some(1234.5))]);
        table.row(["none".to_owned(), number(None)]);
        assert_eq!(table.render(), "case      µs\na       1.00\nlonger  1234\nnone       –\n");
    }
}
