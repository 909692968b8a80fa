//! Tokens with names.

use std::time::{Duration, UNIX_EPOCH};

use plugbay_telemetry::rfc3339;

use super::{
    Style, View,
    table::{Cell, Column, Table},
};
use crate::{
    commands::token::{Created, TokenList},
    token_store::StoredToken,
};

impl View for Created {
    fn human(&self, _: Style) -> String {
        format!("{}\n", self.token)
    }
}

impl View for TokenList {
    fn human(&self, style: Style) -> String {
        if self.tokens.is_empty() {
            return "There are no tokens; `plugbay token create NAME` makes one.\n".to_owned();
        }
        let columns = ["NAME", "CREATED", "EXPIRES", "LIMITS"].map(Column::left);
        let mut table = Table::new(columns.into_iter().chain([Column::flexible("TOOLS")]).collect());
        for token in &self.tokens {
            table.row(vec![
                Cell::painted(&*token.name, Style::bold),
                day(token.created).into(),
                expires(token, self.now),
                limits(token).into(),
                token.tools.as_ref().map_or_else(|| "all".to_owned(), |tools| tools.join(" ")).into(),
            ]);
        }
        table.render(style)
    }
}

fn expires(token: &StoredToken, now: u64) -> Cell {
    match token.expires {
        None => "never".into(),
        Some(at) if at <= now => Cell::painted("expired", Style::bad),
        Some(at) => day(at).into(),
    }
}

fn limits(token: &StoredToken) -> String {
    let named = |limit: Option<_>, what: &str| Some(format!("{}{what}", limit?));
    let limits = [
        named(token.limits.rate, ""),
        named(token.limits.session_rate, " each session"),
        named(token.limits.quota, " in all"),
    ];
    limits.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn day(seconds: u64) -> String {
    let mut moment = rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
    moment.truncate("2026-11-17".len());
    moment
}
