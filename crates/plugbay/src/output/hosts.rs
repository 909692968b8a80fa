//! Output of the facts about hosts.

use std::collections::BTreeMap;

use plugbay_core::profile::{Profile, Shows};

use super::{
    Style, View, one_line,
    table::{Cell, Column, Table, wrap},
    units::count,
};
use crate::commands::hosts::{Hosts, Row};

const LEGEND: [(&str, &str); 7] = [
    ("MODE", "how plugbay lists its tools to this host"),
    ("AGAIN", "lists again after a change, for which plugbay waits so long"),
    ("HIDES", "hides tools behind a search of its own, from this number on"),
    ("TOOLS", "works with at most this many tools"),
    ("NAME", "the longest name of a tool, in characters"),
    ("RESULT", "a longer result, in bytes, is cut or put into a file"),
    ("SHOWS", "the part of a result that its model reads"),
];

impl View for Hosts {
    fn human(&self, style: Style) -> String {
        let mut table = Table::new(vec![
            Column::left("HOST"),
            Column::left("MODE"),
            Column::left("AGAIN"),
            Column::left("HIDES"),
            Column::right("TOOLS"),
            Column::right("NAME"),
            Column::right("RESULT"),
            Column::left("SHOWS"),
        ]);
        for row in &self.hosts {
            let Profile { name, limits, shows, .. } = &row.profile;
            let limit = |limit: &Option<usize>| limit.map(count).unwrap_or_default();
            table.row(vec![
                Cell::painted(one_line(name), Style::bold),
                row.mode.clone().into(),
                lists_again(&row.profile).into(),
                hides(&row.profile).into(),
                limit(&limits.tools).into(),
                limit(&limits.name).into(),
                limit(&limits.result).into(),
                shown(*shows).into(),
            ]);
        }
        let mut legend = Table::new(vec![Column::left(""), Column::flexible("")]).indented(2);
        for (column, meaning) in LEGEND {
            legend.row(vec![Cell::painted(column, Style::dim), meaning.into()]);
        }
        format!("{}\n{}\n{}", table.render(style), reasons(&self.hosts, style), legend.render(style))
    }
}

/// Each mode with its hosts and the reason, which many hosts share.
fn reasons(rows: &[Row], style: Style) -> String {
    let mut hosts: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for row in rows {
        hosts.entry((&row.mode, &row.why)).or_default().push(one_line(&row.profile.name));
    }
    let reason = |((mode, why), hosts): ((&str, &str), Vec<String>)| {
        let text = format!("mode {mode}: {why} ({})", hosts.join(", "));
        let lines = wrap(&text, style.width.map_or(usize::MAX, |width| width.saturating_sub(4)));
        format!("  {}\n", lines.join("\n    "))
    };
    hosts.into_iter().map(reason).collect()
}

fn lists_again(profile: &Profile) -> String {
    match profile {
        Profile { lists_again: false, .. } => "no".to_owned(),
        Profile { pause_ms: 0, .. } => "yes".to_owned(),
        Profile { pause_ms, .. } => format!("{pause_ms} ms"),
    }
}

fn hides(profile: &Profile) -> String {
    match profile.defers_from {
        None => "no".to_owned(),
        Some(0 | 1) => "all".to_owned(),
        Some(from) => format!("from {from}"),
    }
}

fn shown(shows: Shows) -> &'static str {
    match shows {
        Shows::Text => "text",
        Shows::Structured => "structured",
        Shows::Both => "both",
        Shows::Unknown => "",
    }
}
