//! One server's entry.

use serde_json::Value;

use super::{
    Style, View, approve::quote, clean::visible, explain::trouble, one_line, table::wrap, units::plural,
};
use crate::{
    commands::get::{CachedTools, Details},
    config::WrittenEntry,
};

/// Width of the column for labels, after a margin.
const LABEL_WIDTH: usize = 9;
const MARGIN: usize = 2;
/// Narrowest width to which text is wrapped.
const NARROWEST: usize = 40;

impl View for Details {
    fn human(&self, style: Style) -> String {
        let name = style.bold(&one_line(&self.entry.name));
        let lines = written(&self.entry).into_iter().chain(self.known());
        let lines: String = lines.map(|(label, value)| line(label, &value, style)).collect();
        let troubles = self.gateways.iter().filter_map(|gateway| gateway.trouble.as_ref());
        let trouble: String =
            troubles.take(1).map(|reason| trouble(reason, MARGIN + LABEL_WIDTH, style)).collect();
        format!("{name}\n{lines}{trouble}")
    }
}

type Labelled = (&'static str, String);

/// The members of the entry that are set.
fn written(entry: &WrittenEntry) -> Vec<Labelled> {
    let file = visible(&entry.file.to_string_lossy());
    let words: Vec<String> = entry.command.iter().map(|word| quote(word)).collect();
    let text = |text: &Option<String>| text.as_deref().map(visible).unwrap_or_default();
    let list = |names: &[String]| visible(&names.join(", "));
    let lines = vec![
        ("file", format!("{file}:{}", entry.line)),
        ("command", words.join(" ")),
        ("url", text(&entry.url)),
        ("folder", text(&entry.cwd)),
        ("env", list(&entry.env)),
        ("headers", list(&entry.headers)),
        ("headers", header_source(entry)),
        ("login", entry.oauth.as_ref().map(login).unwrap_or_default()),
        ("allow", list(entry.allow.as_deref().unwrap_or_default())),
        ("deny", list(&entry.deny)),
        ("problem", entry.problem.as_deref().map(one_line).unwrap_or_default()),
    ];
    lines.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// The program or file that provides further headers.
fn header_source(entry: &WrittenEntry) -> String {
    let words: Vec<String> = entry.headers_command.iter().map(|word| quote(word)).collect();
    match (&entry.headers_file, words.as_slice()) {
        (_, [_, ..]) => format!("of the command {}", words.join(" ")),
        (Some(file), []) => format!("of the file {}", visible(file)),
        (None, []) => String::new(),
    }
}

/// What the entry says about the login, key by key.
fn login(oauth: &Value) -> String {
    match oauth {
        Value::Object(members) if members.is_empty() => "if the server asks for it".to_owned(),
        Value::Object(members) => {
            let text = |value: &Value| match value {
                Value::String(text) => text.clone(),
                Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
                other => other.to_string(),
            };
            let members = members.iter().map(|(key, value)| format!("{key}: {}", text(value)));
            visible(&members.collect::<Vec<_>>().join(", "))
        }
        _ => "never".to_owned(),
    }
}

impl Details {
    /// The facts about the server besides its entry.
    fn known(&self) -> Vec<Labelled> {
        let name = one_line(&self.entry.name);
        let tools = match &self.tools {
            _ if self.entry.disabled => ("state", format!("disabled; `plugbay enable {name}` uses it again")),
            Some(tools) => ("tools", tools.human()),
            None => ("tools", "not known yet; `plugbay list` starts every server".to_owned()),
        };
        let states = self.gateways.iter().map(|gateway| {
            ("state", format!("{} in the gateway with pid {}", gateway.state.as_str(), gateway.pid))
        });
        [tools].into_iter().chain(states).collect()
    }
}

impl CachedTools {
    fn human(&self) -> String {
        let count = match self.all.saturating_sub(self.allowed.len()) {
            0 => plural(self.all, "tool"),
            _ => format!("{} of {}", self.allowed.len(), plural(self.all, "tool")),
        };
        match self.allowed.as_slice() {
            [] => count,
            names => format!("{count}: {}", one_line(&names.join(", "))),
        }
    }
}

fn line(label: &str, value: &str, style: Style) -> String {
    let room = style.width.map(|width| width.saturating_sub(MARGIN + LABEL_WIDTH).max(NARROWEST));
    let margin = " ".repeat(MARGIN + LABEL_WIDTH);
    let value = wrap(value, room.unwrap_or(usize::MAX)).join(&format!("\n{margin}"));
    let blank = " ".repeat(LABEL_WIDTH - label.len());
    format!("{}{}{blank}{value}\n", " ".repeat(MARGIN), style.dim(label))
}

#[cfg(test)]
mod tests {
    use plugbay_core::server_state::ServerState;

    use super::*;
    use crate::{commands::get::InGateway, error::StartFailure};

    fn details() -> Details {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let entry = WrittenEntry {
            name: "github".to_owned(),
            file: "/home/u/.config/plugbay/config.jsonc".into(),
            line: 12,
            disabled: false,
            command: words("npx -y server ${X}"),
            remote: false,
            url: None,
            cwd: Some("/srv".to_owned()),
            env: words("GITHUB_TOKEN LANG"),
            headers: vec![],
            oauth: None,
            headers_command: vec![],
            headers_file: None,
            allow: Some(words("get_* list_*")),
            deny: vec![],
            problem: None,
        };
        let allowed = (1..=6).map(|number| format!("github__get_number_{number}")).collect();
        Details { entry, tools: Some(CachedTools { allowed, all: 8 }), gateways: vec![] }
    }

    #[test]
    fn an_entry_is_shown_without_values_of_its_variables() {
        insta::assert_snapshot!(details().human(Style { colour: false, width: Some(80) }), @"
        github
          file     /home/u/.config/plugbay/config.jsonc:12
          command  npx -y server ${X}
          folder   /srv
          env      GITHUB_TOKEN, LANG
          allow    get_*, list_*
          tools    6 of 8 tools: github__get_number_1, github__get_number_2,
                   github__get_number_3, github__get_number_4, github__get_number_5,
                   github__get_number_6
        ");
    }

    #[test]
    fn the_state_of_a_server_in_a_gateway_is_shown_with_its_failure() {
        let trouble = StartFailure {
            reason: "exit code 1".into(),
            remedy: Some("fix it".into()),
            ..StartFailure::default()
        };
        let gateways = vec![InGateway { pid: 7, state: ServerState::Error, trouble: Some(trouble) }];
        let remote =
            |entry| WrittenEntry { command: vec![], url: Some("https://h/mcp".into()), cwd: None, ..entry };
        let oauth = serde_json::json!({ "clientId": "me", "clientSecret": "…", "scopes": ["a", "b"] });
        let remote = |entry| WrittenEntry {
            oauth: Some(oauth.clone()),
            headers_command: vec!["op".into(), "read x".into()],
            ..remote(entry)
        };
        let details = Details { tools: None, gateways, entry: remote(details().entry) };
        insta::assert_snapshot!(details.human(Style { colour: false, width: Some(80) }), @"
        github
          file     /home/u/.config/plugbay/config.jsonc:12
          url      https://h/mcp
          env      GITHUB_TOKEN, LANG
          headers  of the command op 'read x'
          login    clientId: me, clientSecret: …, scopes: a b
          allow    get_*, list_*
          tools    not known yet; `plugbay list` starts every server
          state    error in the gateway with pid 7
                   exit code 1
                   try     fix it
        ");
    }
}
