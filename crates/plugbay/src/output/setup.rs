//! Output of setup: planned changes, changes made, and the result of undoing.

use plugbay_core::exposure::Mode;

use super::{
    Style, View, clean_line, diff,
    explain::trouble,
    one_line,
    table::{Cell, Column, Table},
    units::{age, count, plural},
};
use crate::{
    commands::setup::{
        Changes, Fate, FileProblem, History, HostCost, HostReport, HostState, Need, Past, Report, Server,
        Stage, UndoPreview, UndoReport,
        wire::{UnwireReport, WireReport, WiredHost},
    },
    error::StartFailure,
    journal::{Outcome, Undone},
};

impl View for Report {
    fn human(&self, style: Style) -> String {
        let mut parts = Vec::new();
        if self.stage == Stage::Planned {
            parts.push(self.changes(style));
        }
        if !self.servers.is_empty() {
            parts.push(self.servers_table(style));
        }
        parts.extend(self.servers.iter().filter_map(|server| explanation(server, style)));
        if !self.hosts.is_empty() && self.stage != Stage::NothingToDo {
            parts.push(self.hosts_table(style));
        }
        parts.extend(self.hosts.iter().filter_map(|host| host.failure(style)));
        parts.extend(self.problems.iter().map(|problem| problem.text(style)));
        parts.push(self.end(style));
        parts.join("\n")
    }
}

impl View for Changes<'_> {
    fn human(&self, style: Style) -> String {
        format!("{}\n", self.0.changes(style))
    }
}

impl Report {
    fn changes(&self, style: Style) -> String {
        let diffs = self.diffs.iter().map(|one| diff::render(one, &self.about(&one.file), style));
        diffs.collect::<Vec<_>>().join("\n")
    }

    /// Names the program that changes a file, if it is not plugbay.
    fn about(&self, file: &str) -> String {
        let host = self.hosts.iter().find(|host| host.file.as_os_str() == file);
        let by = host.and_then(|host| host.by.as_ref());
        by.map(|by| format!("changed by `{by}`, which writes it in its own form")).unwrap_or_default()
    }

    fn servers_table(&self, style: Style) -> String {
        let columns = vec![Column::left("SERVER"), Column::left("FROM"), Column::flexible("RESULT")];
        let mut table = Table::new(columns);
        for server in &self.servers {
            let hosts = server.hosts.join(", ");
            table.row(vec![one_line(&server.name).into(), hosts.into(), self.result(server)]);
        }
        table.render(style)
    }

    fn result(&self, server: &Server) -> Cell {
        let done = self.stage == Stage::Done;
        match &server.fate {
            Fate::Moves if done => Cell::painted("moved", Style::good),
            Fate::Moves => Cell::painted("works, moves", Style::good),
            Fate::MovesDisabled if done => Cell::painted("moved, disabled", Style::dim),
            Fate::MovesDisabled => Cell::painted("disabled, moves", Style::dim),
            Fate::Stays { needs: Some(Need::Variable(name)), .. } => {
                Cell::painted(format!("stays: needs the variable {name}"), Style::warn)
            }
            Fate::Stays { needs: Some(Need::Login), .. } => {
                Cell::painted("stays: needs a login", Style::warn)
            }
            Fate::Stays { reason, .. } => {
                Cell::painted(format!("stays: {}", one_line(&reason.reason)), Style::warn)
            }
        }
    }

    fn hosts_table(&self, style: Style) -> String {
        let mut table = Table::new(vec![
            Column::left("HOST"),
            Column::left("PLUGBAY"),
            Column::left("MODE"),
            Column::right("TOKENS BEFORE"),
            Column::right("NOW"),
        ]);
        for host in &self.hosts {
            table.row(host.cells());
        }
        let mut text = table.render(style);
        if self.hosts.iter().any(|host| host.cost.as_ref().is_some_and(|cost| cost.defers)) {
            text.push_str(&style.dim("* this host hides tools itself: its model reads only their names\n"));
        }
        if self.hosts.len() > 1 {
            text.push_str(&style.dim("before: the host's own servers; now: the servers of all hosts\n"));
        }
        // A host that defers tools lists all for another reason: its model reads only their names.
        let pays_more = |cost: &HostCost| cost.mode == Mode::All && !cost.defers && cost.now > cost.before;
        if self.hosts.iter().any(|host| host.cost.as_ref().is_some_and(pays_more)) {
            let why = "more than before: with so few tools, listing all costs less than searching\n";
            text.push_str(&style.dim(why));
        }
        text
    }

    fn end(&self, style: Style) -> String {
        match self.stage {
            Stage::NothingToDo if self.hosts.is_empty() => "Nothing has been changed.\n".to_owned(),
            Stage::NothingToDo => {
                "Nothing to do: the hosts are wired, and have no other server that could move.\n".to_owned()
            }
            Stage::Planned => {
                let next = self.next.as_ref().map(|next| format!("To change it: {next}\n"));
                format!("{}{}", style.dim("Nothing has been changed yet.\n"), next.unwrap_or_default())
            }
            Stage::Done => {
                let wired = self.hosts.iter().filter(|host| matches!(host.state, HostState::Wired { .. }));
                let mut orders: Vec<&str> = wired.map(|host| host.restart.as_str()).collect();
                orders.dedup();
                if orders.is_empty() {
                    return "No host has been wired.\n".to_owned();
                }
                format!(
                    "{}To see what changed: plugbay setup --show\nTo get back: plugbay setup --undo\n",
                    restarts(&orders)
                )
            }
        }
    }
}

/// How the user makes hosts notice the changes.
fn restarts(orders: &[&str]) -> String {
    if orders.is_empty() {
        String::new()
    } else {
        format!("So that your hosts notice:\n  {}\n", orders.join("\n  "))
    }
}

impl HostReport {
    fn cells(&self) -> Vec<Cell> {
        let state = match &self.state {
            HostState::Planned => "".into(),
            HostState::Wired { tools } => {
                Cell::painted(format!("answers, {}", plural(*tools, "tool")), Style::good)
            }
            HostState::Failed { .. } => Cell::painted("not wired", Style::bad),
        };
        let mut cells = vec![self.name.clone().into(), state];
        if let Some(cost) = &self.cost {
            let mark = if cost.defers { "*" } else { "" };
            cells.extend([
                format!("{}{mark}", cost.mode).into(),
                count(cost.before).into(),
                count(cost.now).into(),
            ]);
        }
        cells
    }

    fn failure(&self, style: Style) -> Option<String> {
        let HostState::Failed { reason } = &self.state else { return None };
        Some(format!(
            "{}\n  {}\n  its files are as they were before\n",
            style.bad(&self.name),
            one_line(reason)
        ))
    }
}

impl FileProblem {
    fn text(&self, style: Style) -> String {
        let file = style.bad(&clean_line(&self.file.to_string_lossy()));
        let remedy = Some("fix it, then run the command again; plugbay has left it alone".to_owned());
        let reason = StartFailure { reason: self.reason.clone(), remedy, ..StartFailure::default() };
        format!("{file}\n{}", trouble(&reason, 2, style))
    }
}

/// The reason why a server stays, and the remedy.
fn explanation(server: &Server, style: Style) -> Option<String> {
    let Fate::Stays { reason, .. } = &server.fate else {
        let notes: Vec<String> = server.notes.iter().map(|note| one_line(note)).collect();
        let name = style.bold(&one_line(&server.name));
        return (!notes.is_empty()).then(|| format!("{name}\n  {}\n", notes.join("\n  ")));
    };
    let is_short = reason.stderr.is_empty() && reason.remedy.is_none();
    (!is_short).then(|| format!("{}\n{}", style.warn(&one_line(&server.name)), trouble(reason, 2, style)))
}

impl View for History {
    fn human(&self, style: Style) -> String {
        if self.changes.is_empty() {
            return "plugbay has changed no file of a host, or has taken everything back.\n".to_owned();
        }
        let changes: Vec<String> = self.changes.iter().map(|change| past(change, style)).collect();
        format!("{}\nTo get back: plugbay setup --undo\n", changes.join("\n"))
    }
}

fn past(change: &Past, style: Style) -> String {
    let undo = match change.undo {
        UndoPreview::Restores => "--undo restores it byte for byte",
        UndoPreview::Removes => "--undo removes it",
        UndoPreview::Merges => "changed since; --undo takes plugbay's part out",
        UndoPreview::Nothing => "as it was before",
    };
    let about = format!("{}, {} ago; {undo}", change.command, age(change.age));
    let shown =
        crate::commands::setup::Diff { file: change.file.display().to_string(), text: change.diff.clone() };
    diff::render(&shown, &about, style)
}

impl View for UndoReport {
    fn human(&self, style: Style) -> String {
        if self.files.is_empty() {
            return "Nothing to undo: no host has an entry of plugbay.\n".to_owned();
        }
        undone(&self.files, &self.restart, style)
    }
}

impl View for UnwireReport {
    fn human(&self, style: Style) -> String {
        undone(&self.files, &self.restart, style)
    }
}

fn undone(files: &[Undone], restart: &[&str], style: Style) -> String {
    if files.is_empty() {
        return "Nothing to undo: plugbay has no entry there.\n".to_owned();
    }
    let mut table = Table::new(vec![Column::left("NOW"), Column::left("FILE")]);
    for file in files {
        let (what, paint): (&str, fn(Style, &str) -> String) = match &file.outcome {
            Outcome::Restored => ("as before, byte for byte", Style::good),
            Outcome::Removed => ("removed, as before", Style::good),
            Outcome::Unchanged => ("as before already", Style::dim),
            Outcome::Merged => ("without plugbay; later changes stay", Style::good),
            Outcome::Failed { .. } => ("not undone", Style::bad),
        };
        table.row(vec![Cell::painted(what, paint), clean_line(&file.path.to_string_lossy()).into()]);
    }
    let failures = files.iter().filter_map(|file| match &file.outcome {
        Outcome::Failed { reason } => {
            let path = clean_line(&file.path.to_string_lossy());
            Some(format!("\n{}\n  {}\n", style.bad(&path), one_line(reason)))
        }
        _ => None,
    });
    let notice = Some(restarts(restart)).filter(|notice| !notice.is_empty());
    let notice = notice.map(|notice| format!("\n{notice}"));
    std::iter::once(table.render(style)).chain(failures).chain(notice).collect()
}

impl View for WireReport {
    fn human(&self, style: Style) -> String {
        let hosts = self.hosts.iter().map(|host| wired(host, style));
        let problems = self.problems.iter().map(|problem| problem.text(style));
        hosts.chain(problems).collect::<Vec<_>>().join("\n")
    }
}

fn wired(host: &WiredHost, style: Style) -> String {
    let shown = if host.diff.text.is_empty() { String::new() } else { diff::render(&host.diff, "", style) };
    let name = style.bold(&host.name);
    let state = match &host.state {
        HostState::Planned if host.already => "has plugbay's entry already".to_owned(),
        HostState::Planned => "nothing has been changed".to_owned(),
        HostState::Wired { tools } => {
            let answers = format!("plugbay answers with {}", plural(*tools, "tool"));
            if host.already {
                format!("had plugbay's entry already; {answers}")
            } else {
                format!("is wired; {answers}\n  {}", host.restart)
            }
        }
        HostState::Failed { reason } => format!("is not wired: {}", one_line(reason)),
    };
    let gap = if shown.is_empty() { "" } else { "\n" };
    format!("{shown}{gap}{name} {state}\n")
}
