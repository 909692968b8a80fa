//! What modes cost a model.

use std::fmt::Write;

use plugbay_core::auto::{SMALL, WORTHWHILE};

use super::{
    Style, View, one_line,
    table::{Column, Table},
    units::count,
};
use crate::commands::tokens::{ConversationCosts, Tokens};

impl View for Tokens {
    fn human(&self, style: Style) -> String {
        let columns = [
            Column::left("MODE"),
            Column::right("TOOLS"),
            Column::right("TOKENS"),
            Column::right("INSTRUCTIONS"),
            Column::right("OF ALL"),
        ];
        let mut table = Table::new(columns.into());
        let all = self.listings.first().map_or(0, |listed| listed.tokens);
        for listed in &self.listings {
            let share = (listed.tokens * 100).checked_div(all).map(|share| format!("{share}%"));
            table.row(vec![
                listed.seen.clone().into(),
                listed.tools.to_string().into(),
                count(listed.tokens).into(),
                count(listed.instructions).into(),
                share.unwrap_or_default().into(),
            ]);
        }
        let mut text = table.render(style);
        text.push_str(
            &style.dim("tokens: o200k; definitions as models read them, and what was asked and answered\n"),
        );
        if let Some(conversation) = &self.conversation {
            explain(&mut text, conversation, style);
        }
        text
    }
}

fn explain(text: &mut String, conversation: &ConversationCosts, style: Style) {
    let ConversationCosts { definitions, turns, tools, servers, context, costs, break_even, hosts } =
        conversation;
    let _ = writeln!(
        text,
        "\nA conversation of {turns} turns that uses {tools} tools of {servers} servers, with {} other tokens in its\n\
         context, makes a model read in all (with about {} tokens of definitions, where the mode is open):",
        count(*context),
        count(*definitions)
    );
    let mut table = Table::new(vec![Column::left("MODE"), Column::right("TOKENS")]).indented(2);
    for cost in costs {
        table.row(vec![cost.mode.clone().into(), count(cost.tokens).into()]);
    }
    text.push_str(&table.render(style));
    let _ = writeln!(
        text,
        "Definitions are read in every turn; search, activate and suite add turns, and search pays from {} tokens of\n\
         definitions on. Everything is listed up to {} tokens, and where no mode saves {WORTHWHILE}%.",
        count(*break_even),
        count(SMALL)
    );
    let columns = [Column::left("HOST"), Column::left("MODE"), Column::flexible("WHY")];
    let mut table = Table::new(columns.into()).indented(2);
    for chosen in hosts {
        table.row(vec![one_line(&chosen.name).into(), chosen.mode.clone().into(), chosen.why.clone().into()]);
    }
    text.push_str(&table.render(style));
}
