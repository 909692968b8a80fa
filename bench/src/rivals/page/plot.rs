//! A picture of one column: a bar for each gateway, the best on top, on a logarithmic scale.

use std::fmt::Write as _;

use super::Entry;
use super::columns::{Column, Topic};

const NAME_WIDTH: f64 = 170.0;
const BAR_WIDTH: f64 = 480.0;
const VALUE_WIDTH: f64 = 90.0;
const ROW: f64 = 24.0;
const TOP: f64 = 34.0;

/// Colours that are readable on light and on dark pages.
const STYLE: &str = "text{font:13px sans-serif;fill:#24292f}.o{fill:#0b6e4f}.r{fill:#9aa5b1}\
                     @media(prefers-color-scheme:dark){text{fill:#e6edf3}.r{fill:#57606a}.o{fill:#2ea37a}}";

pub(super) fn bars(topic: &Topic, column: &Column, entries: &[Entry<'_>]) -> String {
    let mut rows: Vec<(f64, &Entry<'_>)> =
        entries.iter().filter_map(|entry| Some((column.value(entry)?, entry))).collect();
    rows.sort_by(|(a, _), (b, _)| column.cost(*a).total_cmp(&column.cost(*b)));
    let values: Vec<f64> = rows.iter().map(|(value, _)| *value).collect();
    let scale = Scale::of(&values);
    let height = TOP + ROW * f64::from(u32::try_from(rows.len()).unwrap_or(0)) + 8.0;
    let width = NAME_WIDTH + BAR_WIDTH + VALUE_WIDTH;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\
         <style>{STYLE}</style>\n<text x=\"0\" y=\"18\" font-weight=\"bold\">{}: {}{}</text>\n",
        escaped(topic.title),
        escaped(&column.title),
        if scale.is_logarithmic { " (logarithmic)" } else { "" },
    );
    let mut y = TOP;
    for (value, entry) in &rows {
        let class = if entry.is_ours() { "o" } else { "r" };
        let length = scale.length(*value);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <rect class=\"{class}\" x=\"{NAME_WIDTH}\" y=\"{y}\" width=\"{length:.1}\" height=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{}\">{}</text>",
            NAME_WIDTH - 8.0,
            y + 14.0,
            escaped(entry.name),
            ROW - 6.0,
            NAME_WIDTH + length + 6.0,
            y + 14.0,
            escaped(&column.shown(Some(*value))),
        );
        y += ROW;
    }
    svg.push_str("</svg>\n");
    svg
}

/// Maps values to lengths; logarithmic if the values differ more than tenfold.
struct Scale {
    least: f64,
    most: f64,
    is_logarithmic: bool,
}

impl Scale {
    fn of(values: &[f64]) -> Self {
        let positive = || values.iter().copied().filter(|value| *value > 0.0);
        let (least, most) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
        Self { least, most, is_logarithmic: most > 10.0 * least }
    }

    /// The length of a bar; even the smallest value has one.
    fn length(&self, value: f64) -> f64 {
        if value <= 0.0 || self.most <= 0.0 {
            return 1.0;
        }
        let share = if self.is_logarithmic {
            let least = self.least / 2.0;
            (value / least).ln() / (self.most / least).ln()
        } else {
            value / self.most
        };
        share * BAR_WIDTH
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_has_the_longest_bar_and_the_smallest_has_one() {
        for values in [[1.0, 5.0], [1.0, 5000.0]] {
            let scale = Scale::of(&values);
            assert!((scale.length(values[1]) - BAR_WIDTH).abs() < 1e-9);
            assert!(scale.length(values[0]) > 1.0);
        }
        assert!((Scale::of(&[]).length(0.0) - 1.0).abs() < 1e-9);
    }
}
