//! Logins at servers.

use std::fmt::Write as _;

use super::{
    Style, View,
    table::{Cell, Column, Table},
    units::age,
};
use crate::commands::auth::{LoggedIn, LoggedOut, LoginList, LoginRow, LoginState};

impl View for LoggedIn {
    fn human(&self, style: Style) -> String {
        let LoggedIn { server, login } = self;
        let place = login.issuer.as_deref().map(|issuer| format!(" at {issuer}")).unwrap_or_default();
        let first = format!("{} {server}{place}\n", style.good("Logged in to"));
        let second = match (login.renews, login.expires) {
            (true, _) => "plugbay renews the login by itself.\n",
            (false, Some(_)) => {
                "The authorization server gave no refresh token: you will have to log in again when this one ends.\n"
            }
            (false, None) => "",
        };
        first + second
    }
}

impl View for LoggedOut {
    fn human(&self, _: Style) -> String {
        if self.servers.is_empty() {
            return "There was no login.\n".to_owned();
        }
        format!("Logged out of {}\n", self.servers.join(", "))
    }
}

impl View for LoginList {
    fn human(&self, style: Style) -> String {
        if self.servers.is_empty() {
            return "No server with a `url` takes a login.\n".to_owned();
        }
        let columns = ["NAME", "LOGIN", "TOKEN"].map(Column::left);
        let mut table = Table::new(
            columns.into_iter().chain([Column::flexible("AUTHORIZATION SERVER, SCOPES")]).collect(),
        );
        for login in &self.servers {
            table.row(vec![
                Cell::painted(&*login.name, Style::bold),
                state(login),
                token(login, self.now).into(),
                details(login).into(),
            ]);
        }
        let mut text = table.render(style);
        for login in self.servers.iter().filter(|login| login.state == LoginState::NeedsLogin) {
            let _ = writeln!(text, "{name}: run `plugbay auth login {name}`", name = login.name);
        }
        text
    }
}

fn state(login: &LoginRow) -> Cell {
    match login.state {
        LoginState::LoggedIn => Cell::painted("logged in", Style::good),
        LoginState::NeedsLogin => Cell::painted("needs login", Style::bad),
        LoginState::NoLogin => "no login".into(),
    }
}

fn token(login: &LoginRow, now: u64) -> String {
    match (login.state, login.expires) {
        (LoginState::NoLogin, _) => String::new(),
        (_, _) if login.renews => "renewed by plugbay".to_owned(),
        (_, Some(at)) if at <= now => "expired".to_owned(),
        (_, Some(at)) => format!("ends in {}", age(at - now)),
        (_, None) => "no end known".to_owned(),
    }
}

fn details(login: &LoginRow) -> String {
    let parts = [login.issuer.clone(), Some(login.scopes.join(" ")), login.problem.clone()];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}
