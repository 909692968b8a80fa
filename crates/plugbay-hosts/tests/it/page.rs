//! The documentation page about hosts must agree with the code.

use std::path::PathBuf;

use plugbay_hosts::{
    edit::{OwnEntry, wire},
    known::{self, Format, Host, Places, Platform, Scope},
    permissions::counterparts_for,
};

const PAGE: &str = include_str!("../../../../docs/hosts.md");

/// A row of the table for each host.
fn table() -> String {
    let home = PathBuf::from("~");
    let config = home.join(".config");
    let places = Places {
        home,
        config,
        project: Some(PathBuf::new()),
        platform: Platform::Linux,
        overrides: [].into(),
    };
    let row = |host: &'static Host| {
        let files = |scope: Scope| {
            let files = host.files(&places).into_iter().filter(|file| file.scope == scope);
            let files: Vec<_> = files.map(|file| format!("`{}`", file.path.display())).collect();
            files.join(", ")
        };
        let format = match host.format {
            Format::Json => "JSON",
            Format::Toml => "TOML",
            Format::Yaml => "YAML",
        };
        let (user, project) = (files(Scope::User), files(Scope::Project));
        format!("| {} | `{}` | {user} | {project} | `{}` | {format} |\n", host.name, host.id, host.container)
    };
    let head = "| host | id | the user's file | in a project | key | syntax |\n|---|---|---|---|---|---|\n";
    format!("{head}{}", known::all().iter().map(row).collect::<String>())
}

#[test]
fn the_table_of_hosts_is_complete() {
    let table = table();
    assert!(PAGE.contains(&table), "docs/hosts.md needs this table:\n\n{table}");
}

#[test]
fn every_variable_that_moves_a_hosts_folder_is_on_the_page() {
    for variable in known::variables() {
        assert!(PAGE.contains(&format!("`{variable}`")), "{variable}");
    }
}

#[test]
fn the_examples_of_entries_are_what_plugbay_writes() {
    let own = OwnEntry {
        name: "plugbay".into(),
        command: "/usr/local/bin/plugbay".into(),
        args: vec!["serve".into()],
        env: [].into(),
    };
    for id in ["cursor", "opencode", "codex", "goose"] {
        let text = wire(known::by_id(id).unwrap(), "", &own, &[]).unwrap();
        assert!(PAGE.contains(&text), "{id}:\n{text}");
    }
}

#[test]
fn the_examples_of_permission_rules_are_what_plugbay_adds() {
    let servers = [("github".to_owned(), "github".to_owned())].into();
    for (id, text, added) in [
        (
            "claude-code",
            r#"{"permissions":{"deny":["mcp__github__delete_repo"]}}"#,
            "mcp__plugbay__github__delete_repo",
        ),
        ("claude-code", r#"{"permissions":{"deny":["mcp__github"]}}"#, "mcp__plugbay__github__*"),
        ("kilo", r#"{"permission":{"github_delete*": "deny"}}"#, r#""plugbay_github__delete*": "deny""#),
    ] {
        let result = counterparts_for(known::by_id(id).unwrap(), text, &servers, "plugbay").unwrap().unwrap();
        assert!(result.contains(added) && PAGE.contains(added), "{id}: {result}");
    }
}
