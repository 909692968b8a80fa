//! Output of the cost of modes for a model.

use std::fmt::Write;

use plugbay_core::auto::IN_SIGHT;

use super::{
    Style, View, one_line,
    table::{Cell, Column, Table, wrap},
    units::{count, percent, plural},
};
use crate::commands::tokens::{ConversationCosts, Cost, HostCost, Listed, Tokens};

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

/// The situation without the server's name, which may be as wide as the rest of the table; and that name.
fn situation(seen: &str) -> (String, Option<&str>) {
    let parts = seen.split_once(", ").and_then(|(mode, rest)| Some((mode, rest.split_once(' ')?)));
    match parts {
        Some((mode, (server, what))) => (format!("{mode}, {what}"), Some(server)),
        None => (seen.to_owned(), None),
    }
}

/// The cost for each host today, and behind plugbay in each mode.
fn host_costs(hosts: &[HostCost], style: Style) -> String {
    let modes = ["ALL", "SUITE", "SEARCH", "ACTIVATE", "CODE"].map(Column::right);
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
    let ConversationCosts { host, request, definitions, tools, servers, costs, hosts } = conversation;
    let paragraph = |words: String| {
        let lines = wrap(&words, style.width.unwrap_or(80)).join("\n");
        format!("{lines}\n")
    };
    let begun = paragraph(format!(
        "Tokens that the model of {} reads in a conversation that uses {} of {}, by the turns it needs without \
         looking for tools. Its request without servers has {}; all definitions together, where the mode is open, \
         about {}.",
        if host == "unknown" { "an unknown host" } else { host },
        plural(*tools, "tool"),
        plural(*servers, "server"),
        count(*request),
        count(*definitions)
    ));
    let _ = write!(text, "\n{begun}");
    text.push_str(&conversations(costs, style));
    let words = format!(
        "FIRST: added to the first request. MORE: turns to find tools. C: a token that the model's provider remembers \
         counts a tenth. WORST: over the cheapest mode, where that is the most. Nobody knows how long a conversation will be, so auto takes the mode \
         with the least WORST; all counts {IN_SIGHT}% less, since the host sees each tool. A host that hides tools itself, or \
         whose own code calls them, gets all."
    );
    text.push_str(&style.dim(&paragraph(words)));
    text.push('\n');
    let columns = [Column::left("HOST"), Column::left("MODE"), Column::flexible("WHY")];
    let mut table = Table::new(columns.into()).indented(2);
    for chosen in hosts {
        table.row(vec![one_line(&chosen.name).into(), chosen.mode.clone().into(), chosen.why.clone().into()]);
    }
    text.push_str(&table.render(style));
}

fn conversations(costs: &[Cost], style: Style) -> String {
    let numbers = ["FIRST", "MORE", "5", "10", "20", "5C", "10C", "20C", "WORST"].map(Column::right);
    let columns = [Column::left("MODE")].into_iter().chain(numbers);
    let mut table = Table::new(columns.collect()).indented(2);
    for cost in costs {
        let mut cells: Vec<Cell> = vec![cost.mode.clone().into(), count(cost.first).into()];
        cells.push(format!("+{}", cost.extra_turns).into());
        cells.extend(cost.conversations.iter().map(|one| Cell::from(count(one.tokens))));
        cells.push(format!("{}%", cost.worst).into());
        table.row(cells);
    }
    table.render(style)
}
