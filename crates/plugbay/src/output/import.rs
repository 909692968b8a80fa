//! The effect of an import, as a table for each file.

use std::path::Path;

use super::{
    Style, View, clean_line,
    table::{Cell, Column, Table, wrap},
    units::plural,
};
use crate::{
    commands::import::{FileReport, Outcome, Report, Row},
    import::{Needs, Origin, Renamed, Skip},
};

impl View for Report {
    fn human(&self, style: Style) -> String {
        let mut text: String = self.files.iter().map(|file| section(file, style)).collect();
        let problems = self.problems.iter().map(|problem| {
            let server = problem.server.as_ref().map(|name| format!("`{name}` ")).unwrap_or_default();
            format!("{}: {server}{}", shown(&problem.file), problem.reason)
        });
        text += &listed("Not imported", problems, style);
        let elsewhere = self.elsewhere.iter().map(|other| {
            let (project, servers) = (shown(&other.project), other.servers.join(", "));
            format!("{servers}: cd {project} && plugbay import {}", other.host)
        });
        text += &listed("Servers of other projects stay there", elsewhere, style);
        if !self.plugins.is_empty() {
            let names = self.plugins.join(", ");
            let line = format!("{names}: their host starts them; to copy them here: plugbay import plugins");
            text += &listed("Plugins with servers", [line], style);
        }
        text
    }
}

fn section(file: &FileReport, style: Style) -> String {
    let added = file.servers.iter().filter(|row| row.result == Outcome::Added).count();
    let place = shown(&file.file);
    let heading = match (added, file.new) {
        (0, _) => format!("{place} stays as it is"),
        (count, true) => format!("{place} is created with {}", plural(count, "server")),
        (count, false) => format!("{place} gets {}", plural(count, "server")),
    };
    let columns = ["SERVER", "FROM", "RESULT"].map(Column::left).into_iter();
    let mut table = Table::new(columns.chain([Column::flexible("NEEDS")]).collect());
    // Every host that uses plugbay has an entry for it; one row is enough for all.
    let (own, others): (Vec<&Row>, Vec<&Row>) =
        file.servers.iter().partition(|row| row.result == Outcome::Skipped(Skip::Plugbay));
    for row in &others {
        let name = Cell::painted(clean_line(&row.name), Style::bold);
        table.row(vec![name, from(&row.origins).into(), result(row), needs(&row.needs)]);
    }
    let mut notes: Vec<String> = others.into_iter().flat_map(notes).collect();
    if let [first, ..] = own.as_slice() {
        let origins: Vec<&Origin> = own.iter().flat_map(|row| &row.origins).collect();
        let name = Cell::painted(clean_line(&first.name), Style::bold);
        table.row(vec![name, from(origins.iter().copied()).into(), result(first), "".into()]);
        let hosts = hosts(origins).join(", ");
        notes.push(format!("{}: leads to plugbay itself, in {hosts}", first.name));
    }
    if !file.settings.is_empty() {
        notes.push(format!("the new file also gets {}", file.settings.join(", ")));
    }
    format!("{heading}\n\n{}\n{}", table.render(style), listed("Notes", notes, style))
}

/// The hosts that have a server, the first one by name.
fn from<'o>(origins: impl IntoIterator<Item = &'o Origin>) -> String {
    match hosts(origins).as_slice() {
        [] => String::new(),
        [one] => clean_line(one),
        [one, other] => clean_line(&format!("{one}, {other}")),
        [one, rest @ ..] => clean_line(&format!("{one} and {} more", rest.len())),
    }
}

fn hosts<'o>(origins: impl IntoIterator<Item = &'o Origin>) -> Vec<&'o str> {
    let mut hosts: Vec<&str> = origins.into_iter().map(|origin| origin.host.as_str()).collect();
    hosts.dedup();
    hosts
}

/// The result of a row, in words that also fit before anything is written.
fn result(row: &Row) -> Cell {
    match row.result {
        Outcome::Added if row.disabled => Cell::painted("new, disabled", Style::warn),
        Outcome::Added => Cell::painted("new", Style::good),
        Outcome::AlreadyThere | Outcome::AlreadyThereChanged => Cell::painted("already there", Style::dim),
        Outcome::Skipped(_) => Cell::painted("skipped", Style::dim),
    }
}

fn needs(needs: &Needs) -> Cell {
    let variables = match needs.variables.as_slice() {
        [] => None,
        [one] if fits(one) => Some(format!("{one} (not set)")),
        more => Some(plural(more.len(), "variable")),
    };
    let login = needs.login.then(|| "perhaps a login".to_owned());
    let all: Vec<String> = variables.into_iter().chain(login).collect();
    Cell::painted(clean_line(&all.join(", ")), Style::warn)
}

/// Whether a name fits into the table without being cut.
fn fits(name: &str) -> bool {
    name.len() <= 24
}

fn notes(row: &Row) -> Vec<String> {
    let renamed = row.renamed.as_ref().map(|renamed| match renamed {
        Renamed::Invalid(was) => {
            format!("was {was:?}; names have letters, digits, `-` and single `_`, at most 32 characters")
        }
        Renamed::Taken(was) => format!("was {was:?}; another server has that name"),
    });
    let result = match row.result {
        Outcome::Skipped(Skip::Gateway(id)) => {
            Some(format!("is another gateway; its servers: plugbay import {id}"))
        }
        Outcome::AlreadyThereChanged => Some(
            "has other variables, headers or another folder in the configuration; that entry stays"
                .to_owned(),
        ),
        Outcome::Added | Outcome::AlreadyThere | Outcome::Skipped(Skip::Plugbay) => None,
    };
    let variables = &row.needs.variables;
    let unset = (variables.len() > 1 || !variables.iter().all(|name| fits(name)))
        .then(|| format!("these variables are not set: {}", variables.join(", ")));
    let all = renamed.into_iter().chain(result).chain(unset).chain(row.notes.iter().cloned());
    all.map(|note| format!("{}: {note}", row.name)).collect()
}

/// Lines under a title, wrapped to the width of the terminal; empty if there are none.
fn listed(title: &str, lines: impl IntoIterator<Item = String>, style: Style) -> String {
    let width = style.width.map_or(usize::MAX, |width| width.saturating_sub(4));
    let lines = lines.into_iter().map(|line| wrap(&clean_line(&line), width).join("\n    "));
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("{}\n  {}\n\n", style.bold(title), lines.join("\n  "))
}

fn shown(path: &Path) -> String {
    clean_line(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(host: &str) -> Origin {
        Origin { host: host.to_owned(), file: "/f".into(), project: None }
    }

    #[test]
    fn entries_for_plugbay_itself_are_one_row_and_one_note_with_their_hosts() {
        let own = |host: &str| Row {
            name: "plugbay".into(),
            origins: vec![origin(host)],
            result: Outcome::Skipped(Skip::Plugbay),
            renamed: None,
            disabled: false,
            needs: Needs::default(),
            notes: Vec::new(),
        };
        let servers = vec![own("codex"), own("cursor"), own("zed")];
        let file = FileReport { file: "/c".into(), new: false, project: None, servers, settings: Vec::new() };
        let text = section(&file, Style { colour: false, width: Some(80) });
        assert!(text.contains("\nplugbay  codex and 2 more  skipped\n"), "{text}");
        assert_eq!(text.matches("leads to plugbay itself, in codex, cursor, zed\n").count(), 1, "{text}");
        assert_eq!(text.lines().filter(|line| line.contains("plugbay")).count(), 2, "{text}");
    }

    #[test]
    fn every_variable_that_is_not_set_is_named_in_full() {
        let row = |variables: &[&str]| Row {
            name: "a".into(),
            origins: Vec::new(),
            result: Outcome::Added,
            renamed: None,
            disabled: false,
            needs: Needs {
                variables: variables.iter().map(|name| (*name).to_owned()).collect(),
                login: true,
            },
            notes: Vec::new(),
        };
        let long = "A_VARIABLE_WITH_A_NAME_THAT_NO_COLUMN_OF_THE_TABLE_CAN_HOLD";
        let servers = vec![row(&["KEY"]), row(&["KEY", "TOKEN"]), row(&[long])];
        let file = FileReport { file: "/c".into(), new: true, project: None, servers, settings: Vec::new() };
        let text = section(&file, Style { colour: false, width: Some(60) });
        assert!(text.contains("KEY (not set), perhaps a login"), "{text}");
        assert!(
            text.contains("2 variables, perhaps a login") && text.contains("1 variable, perhaps"),
            "{text}"
        );
        assert!(text.contains("are not set: KEY, TOKEN\n") && text.contains(long), "{text}");
    }
}
