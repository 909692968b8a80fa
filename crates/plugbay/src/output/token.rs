//! Output of named tokens.

use std::time::{Duration, UNIX_EPOCH};

use plugbay_telemetry::rfc3339;

use super::{
    Style, View,
    table::{Cell, Column, Table},
    units::age,
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
        Some(at) if at - now < SOON => format!("in {}", age(at - now)).into(),
        Some(at) => day(at).into(),
    }
}

/// If a token expires within this time, the time left is shown; in seconds.
const SOON: u64 = 2 * 24 * 3600;

fn limits(token: &StoredToken) -> String {
    let named = |what: &str, limit: Option<_>| Some(format!("{what} {}", limit?));
    let limits = [
        named("rate", token.limits.rate),
        named("session rate", token.limits.session_rate),
        named("quota", token.limits.quota),
    ];
    limits.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn day(seconds: u64) -> String {
    let mut moment = rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
    moment.truncate("2026-11-17".len());
    moment
}

#[cfg(test)]
mod tests {
    use plugbay_core::limit::CallLimits;

    use super::*;

    #[test]
    fn a_token_list_shows_limits_by_name_and_which_tokens_have_expired() {
        let limits =
            CallLimits { rate: "60/min".parse().ok(), session_rate: None, quota: "9/day".parse().ok() };
        let token = |name: &str, expires| StoredToken {
            name: name.to_owned(),
            digest: String::new(),
            tools: None,
            created: 0,
            expires: Some(expires),
            limits,
        };
        let tokens = vec![token("old", 100), token("ci", 100 + 2 * 3600), token("ada", 100 + 30 * 86400)];
        let expected = "\
NAME  CREATED     EXPIRES     LIMITS                    TOOLS
old   1970-01-01  expired     rate 60/min, quota 9/day  all
ci    1970-01-01  in 2 h      rate 60/min, quota 9/day  all
ada   1970-01-01  1970-01-31  rate 60/min, quota 9/day  all
";
        assert_eq!(TokenList { tokens, now: 100 }.human(Style::PLAIN), expected);
    }
}
