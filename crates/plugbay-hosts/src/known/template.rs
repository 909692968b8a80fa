//! plugbay's own entry in the dialect of a host.

use serde_json::Value;

use super::{Host, OwnCommand};
use crate::edit::OwnEntry;

/// An object whose members keep the order in which they are written.
pub(crate) type Members = Vec<(String, Value)>;

impl Host {
    /// plugbay's entry in this host's form.
    pub(crate) fn own_members(&self, own: &OwnEntry) -> Members {
        let filled = self.entry_order().filter_map(|key| {
            let value = fill(&self.entry[key], own)?;
            Some((key.clone(), value))
        });
        filled.collect()
    }

    /// The keys of an entry, the kind of transport first, settings last.
    fn entry_order(&self) -> impl Iterator<Item = &String> {
        const ORDER: [&str; 8] =
            ["name", "description", "source", "type", "transport", "command", "cmd", "args"];
        let place = |key: &str| ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
        let mut keys: Vec<&String> = self.entry.keys().collect();
        keys.sort_by_key(|key| place(key));
        keys.into_iter()
    }
}

impl OwnCommand {
    /// The arguments that add plugbay to the host.
    pub fn add_args(&self, host: &Host, own: &OwnEntry) -> Vec<String> {
        let json = || Value::Object(host.own_members(own).into_iter().collect()).to_string();
        self.add
            .iter()
            .map(|arg| arg.replace("{name}", &own.name))
            .map(|arg| if arg == "{json}" { json() } else { arg })
            .collect()
    }

    /// The arguments that remove the server of this name from the host.
    pub fn remove_args(&self, name: &str) -> Vec<String> {
        self.remove.iter().map(|arg| arg.replace("{name}", name)).collect()
    }
}

/// A value of the template with its placeholders replaced; `None` for a member that would be empty.
fn fill(template: &Value, own: &OwnEntry) -> Option<Value> {
    let strings = |items: &[String]| Value::from(items.to_vec());
    match template.as_str() {
        Some("{command}") => Some(own.command.clone().into()),
        Some("{name}") => Some(own.name.clone().into()),
        Some("{args}") => (!own.args.is_empty()).then(|| strings(&own.args)),
        Some("{commandLine}") => {
            let mut line = vec![own.command.clone()];
            line.extend_from_slice(&own.args);
            Some(strings(&line))
        }
        Some("{env}") => (!own.env.is_empty()).then(|| {
            let members = own.env.iter().map(|(name, value)| (name.clone(), Value::from(value.clone())));
            Value::Object(members.collect())
        }),
        _ => Some(template.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::known;

    fn own() -> OwnEntry {
        OwnEntry {
            name: "plugbay".into(),
            command: "/bin/plugbay".into(),
            args: vec!["serve".into()],
            env: [].into(),
        }
    }

    #[test]
    fn an_entry_is_written_in_the_hosts_dialect() {
        let written = |id: &str| -> Value {
            Value::Object(known::by_id(id).unwrap().own_members(&own()).into_iter().collect())
        };
        assert_eq!(written("cursor"), json!({ "command": "/bin/plugbay", "args": ["serve"] }));
        assert_eq!(
            written("opencode"),
            json!({ "type": "local", "command": ["/bin/plugbay", "serve"], "enabled": true })
        );
        assert_eq!(written("goose")["cmd"], "/bin/plugbay");
    }

    #[test]
    fn the_hosts_own_command_gets_the_entry_as_json() {
        let claude = known::by_id("claude-code").unwrap();
        let command = claude.command.as_ref().unwrap();
        let args = command.add_args(claude, &own());
        assert_eq!(args[..5], ["mcp", "add-json", "--scope", "user", "plugbay"]);
        let json: Value = serde_json::from_str(&args[5]).unwrap();
        assert_eq!(json["command"], "/bin/plugbay");
        assert_eq!(command.remove_args("plugbay").last().unwrap(), "plugbay");
    }
}
