//! What modes cost a model.

use std::fmt::Write;

use plugbay_core::auto::{SMALL, WORTHWHILE};

use super::{
    Style, View, one_line,
    table::{Cell, Column, Table, wrap},
    units::{count, percent, plural},
};
use crate::commands::tokens::{ConversationCosts, HostCost, Listed, Tokens};

impl View for Tokens {
    fn human(&self, style: Style) -> String {
        let mut text = listings(&self.listings, style);
        text.push('\n');
        text.push_str(&host_costs(&self.hosts, style));
        if let Some(conversation) = &self.conversation {
            explain(&mut text, conversation, style);
        }
        text
    }
}

fn listings(listings: &[Listed], style: Style) -> String {
    let columns = [
        Column::left("MODE"),
        Column::right("TOOLS"),
        Column::right("TEXTS"),
        Column::right("INSTRUCTIONS"),
        Column::right("TOKENS"),
        Column::right("OF ALL"),
    ];
    let mut table = Table::new(columns.into());
    let all = listings.first().map_or(0, |listed| listed.total);
    for listed in listings {
        table.row(vec![
            situation(&listed.seen).0.into(),
            listed.tools.to_string().into(),
            count(listed.tokens).into(),
            count(listed.instructions).into(),
            count(listed.total).into(),
            percent(listed.total, all).into(),
        ]);
    }
    let mut legend =
        String::from("TEXTS: definitions as models read them, and calls so far; tokens: o200k\n");
    if let Some(server) = listings.iter().find_map(|listed| situation(&listed.seen).1) {
        let _ = writeln!(legend, "introspected, called, on and off: the server {}", one_line(server));
    }
    format!("{}{}", table.render(style), style.dim(&legend))
}

/// What is seen without the name of the server, which may be as wide as the rest of the table; and that name.
fn situation(seen: &str) -> (String, Option<&str>) {
    let parts = seen.split_once(", ").and_then(|(mode, rest)| Some((mode, rest.split_once(' ')?)));
    match parts {
        Some((mode, (server, what))) => (format!("{mode}, {what}"), Some(server)),
        None => (seen.to_owned(), None),
    }
}

/// What each host pays today, and behind plugbay in each mode.
fn host_costs(hosts: &[HostCost], style: Style) -> String {
    let modes = ["ALL", "SUITE", "SEARCH", "ACTIVATE"].map(Column::right);
    let columns = [Column::left("HOST"), Column::right("TODAY")].into_iter().chain(modes);
    let mut table = Table::new(columns.chain([Column::left("GETS")]).collect());
    for host in hosts {
        let today = format!("{}{}", count(host.direct), if host.defers { "*" } else { " " });
        let costs = host.modes.iter().map(|cost| cost.tokens.map_or_else(|| "–".to_owned(), count).into());
        let cells = [Cell::painted(one_line(&host.host), Style::bold), today.into()].into_iter().chain(costs);
        table.row(cells.chain([host.mode.to_string().into()]).collect());
    }
    let mut legend =
        String::from("TODAY: the servers in the host's own file; then behind plugbay, by mode\n");
    if hosts.iter().any(|host| host.defers) {
        legend.push_str("* the host hides tools behind a search of its own: only their names count\n");
    }
    format!("{}{}", table.render(style), style.dim(&legend))
}

fn explain(text: &mut String, conversation: &ConversationCosts, style: Style) {
    let ConversationCosts { definitions, turns, tools, servers, context, costs, break_even, hosts } =
        conversation;
    let paragraph = |words: String| {
        let lines = wrap(&words, style.width.unwrap_or(80)).join("\n");
        format!("{lines}\n")
    };
    let begun = paragraph(format!(
        "A conversation of {turns} turns that uses {} of {}, with {} other tokens in its context, makes a model read \
         in all (with about {} tokens of definitions, where the mode is open):",
        plural(*tools, "tool"),
        plural(*servers, "server"),
        count(*context),
        count(*definitions)
    ));
    let _ = write!(text, "\n{begun}");
    let mut table = Table::new(vec![Column::left("MODE"), Column::right("TOKENS")]).indented(2);
    for cost in costs {
        table.row(vec![cost.mode.clone().into(), count(cost.tokens).into()]);
    }
    text.push_str(&table.render(style));
    text.push_str(&paragraph(format!(
        "Definitions are read in every turn; search, activate and suite add turns, and search pays from {} tokens of \
         definitions on. Everything is listed up to {} tokens, and where no mode saves {WORTHWHILE}%.",
        count(*break_even),
        count(SMALL)
    )));
    let columns = [Column::left("HOST"), Column::left("MODE"), Column::flexible("WHY")];
    let mut table = Table::new(columns.into()).indented(2);
    for chosen in hosts {
        table.row(vec![one_line(&chosen.name).into(), chosen.mode.clone().into(), chosen.why.clone().into()]);
    }
    text.push_str(&table.render(style));
}
