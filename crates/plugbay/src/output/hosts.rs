//! What is known of hosts.

use plugbay_core::profile::{Profile, Shows};

use super::{
    Style, View, one_line,
    table::{Cell, Column, Table},
    units::count,
};
use crate::commands::hosts::Hosts;

impl View for Hosts {
    fn human(&self, style: Style) -> String {
        let mut table = Table::new(vec![
            Column::left("HOST"),
            Column::left("MODE"),
            Column::left("LISTS AGAIN"),
            Column::left("HIDES TOOLS"),
            Column::right("MOST TOOLS"),
            Column::right("NAMES"),
            Column::right("RESULTS"),
            Column::left("SHOWS"),
            Column::flexible("WHY THIS MODE"),
        ]);
        for row in &self.hosts {
            let Profile { name, most_tools, name_limit, result_limit, shows, .. } = &row.profile;
            let limit = |limit: &Option<usize>| limit.map(count).unwrap_or_default();
            table.row(vec![
                Cell::painted(one_line(name), Style::bold),
                row.mode.clone().into(),
                lists_again(&row.profile).into(),
                hides(&row.profile).into(),
                limit(most_tools).into(),
                limit(name_limit).into(),
                limit(result_limit).into(),
                shown(*shows).into(),
                row.why.clone().into(),
            ]);
        }
        table.render(style)
    }
}

fn lists_again(profile: &Profile) -> String {
    match profile {
        Profile { lists_again: false, .. } => "no".to_owned(),
        Profile { pause_ms: 0, .. } => "yes".to_owned(),
        Profile { pause_ms, .. } => format!("within {pause_ms} ms"),
    }
}

fn hides(profile: &Profile) -> String {
    match profile.defers_from {
        None => "no".to_owned(),
        Some(0 | 1) => "all".to_owned(),
        Some(from) => format!("from {from} on"),
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
