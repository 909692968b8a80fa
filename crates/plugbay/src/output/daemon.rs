//! The daemon, its windows and its servers.

use plugbay_core::scope::Scope;

use super::{
    Style, View, one_line,
    table::{Cell, Column, Table},
    units::{age, count, size},
};
use crate::{
    commands::daemon::{Daemon, DaemonReport, DaemonServer, Done},
    daemon::WindowStatus,
};

const INDENT: usize = 2;
const NOTHING: &str = "no daemon runs: `plugbay serve` starts one when a host opens\n";
const STOPPED: &str = "the daemon has ended; the next message of a host starts another\n";
const STARTED: &str = "no daemon ran; this one has started\n";
const RESTARTED: &str = "a new daemon has taken over; windows come to it with their next message\n";

impl View for DaemonReport {
    fn human(&self, style: Style) -> String {
        match (&self.daemon, self.done) {
            (None, Some(Done::Stopped)) => match self.cut {
                0 => STOPPED.to_owned(),
                cut => format!("{STOPPED}{} cut: the host got an error that says so\n", were(cut)),
            },
            (None, _) => NOTHING.to_owned(),
            (Some(daemon), Some(Done::Started)) => format!("{STARTED}{}", daemon.text(self.now, style)),
            (Some(daemon), Some(Done::Restarted)) => format!("{RESTARTED}{}", daemon.text(self.now, style)),
            (Some(daemon), _) => daemon.text(self.now, style),
        }
    }
}

impl Daemon {
    fn text(&self, now: u64, style: Style) -> String {
        let mut parts = vec![self.title(now, style)];
        if !self.windows.is_empty() {
            parts.push(self.window_table(now, style));
        }
        if !self.servers.is_empty() {
            parts.push(self.server_table(style));
        }
        parts.join("\n")
    }

    fn title(&self, now: u64, style: Style) -> String {
        let memory = self.memory.map(|memory| format!(", {}", bytes(memory))).unwrap_or_default();
        let age = age(now.saturating_sub(self.since));
        let line = format!("plugbay {}, for {age}{memory}", self.version);
        let no_window = if self.windows.is_empty() { ", no window" } else { "" };
        format!("{} {}{no_window}\n", style.bold(&format!("daemon {}:", self.pid)), one_line(&line))
    }

    fn window_table(&self, now: u64, style: Style) -> String {
        let columns = vec![
            Column::flexible("WINDOW"),
            Column::left("MODE"),
            Column::left("FOR"),
            Column::right("PID"),
            Column::flexible("FOLDER"),
        ];
        let mut table = Table::new(columns).indented(INDENT);
        for window in &self.windows {
            table.row(cells(window, now));
        }
        table.render(style)
    }

    fn server_table(&self, style: Style) -> String {
        let columns = vec![
            Column::left("SERVER"),
            Column::left("STATE"),
            Column::left("SCOPE"),
            Column::right("PROCESSES"),
            Column::right("PID"),
            Column::right("MEMORY"),
            Column::flexible("WHY"),
        ];
        let mut table = Table::new(columns).indented(INDENT);
        for server in &self.servers {
            table.row(server.cells());
        }
        table.render(style)
    }
}

fn were(calls: usize) -> String {
    if calls == 1 { "1 call was".to_owned() } else { format!("{} calls were", count(calls)) }
}

fn cells(window: &WindowStatus, now: u64) -> Vec<Cell> {
    let host = window.host.as_ref();
    let name = host.and_then(|host| host.name.as_deref()).map_or_else(|| "–".to_owned(), one_line);
    let mode = host.and_then(|host| host.mode).map_or_else(|| "–".to_owned(), |mode| mode.to_string());
    let folder = window.folder.to_string_lossy();
    let place = match &window.config {
        Some(file) => format!("{folder}, with {}", file.display()),
        None => folder.into_owned(),
    };
    vec![
        Cell::painted(name, Style::bold),
        mode.into(),
        age(now.saturating_sub(window.since)).into(),
        window.pid.to_string().into(),
        one_line(&place).into(),
    ]
}

impl DaemonServer {
    fn cells(&self) -> Vec<Cell> {
        let status = &self.status;
        vec![
            one_line(&status.name).into(),
            super::state(status.state),
            status.scope.map(Scope::word).unwrap_or_default().into(),
            self.processes().into(),
            status.pid.map(|pid| pid.to_string()).unwrap_or_default().into(),
            self.memory.map(bytes).unwrap_or_default().into(),
            self.why().into(),
        ]
    }

    /// The folder that it runs for, and the reason for its scope. The folder comes first to distinguish rows
    /// in a narrow terminal.
    fn why(&self) -> String {
        let folder = self.status.folder.as_ref().map(|folder| format!("in {folder}"));
        let parts = folder.into_iter().chain(self.status.why.clone());
        one_line(&parts.collect::<Vec<_>>().join(", "))
    }

    /// How many processes run, and how many may. A server behind a URL has none.
    fn processes(&self) -> String {
        if self.status.remote {
            return "–".to_owned();
        }
        let running = count(self.status.instances);
        self.status.instance_limit.map_or(running.clone(), |limit| format!("{running} of {}", count(limit)))
    }
}

fn bytes(memory: u64) -> String {
    size(usize::try_from(memory).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use plugbay_core::{era::Era, exposure::Mode, server_state::ServerState};
    use plugbay_downstream::ConnectedHost;

    use super::*;
    use crate::status_file::ServerStatus;

    fn server(name: &str, scope: Scope, pid: Option<i32>, instances: usize) -> DaemonServer {
        let status = ServerStatus {
            name: name.to_owned(),
            state: if instances > 0 { ServerState::Ready } else { ServerState::Idle },
            tools: Some(3),
            pid,
            scope: Some(scope),
            why: Some("browser".to_owned()),
            instances,
            instance_limit: (scope == Scope::Session).then_some(8),
            folder: (scope == Scope::Project).then(|| "/home/ann/web".to_owned()),
            remote: false,
            hidden: Vec::new(),
            left_out: None,
            trouble: None,
        };
        DaemonServer { status, memory: pid.map(|_| 52_000_000) }
    }

    fn daemon() -> Daemon {
        let host = ConnectedHost {
            name: Some("claude-code\x1b[2J".to_owned()),
            version: Some("2.0".to_owned()),
            profile: "claude-code".to_owned(),
            era: Era::Legacy,
            mode: Some(Mode::All),
            why: None,
        };
        let window = |pid, host, config| WindowStatus {
            pid,
            since: 1000,
            folder: "/home/ann/web".into(),
            config,
            host,
        };
        Daemon {
            pid: 4711,
            version: "0.1.0".to_owned(),
            since: 1000,
            memory: Some(14_000_000),
            windows: vec![window(4712, Some(host), None), window(4713, None, Some("/c.jsonc".into()))],
            servers: vec![
                server("files", Scope::Project, Some(4715), 1),
                server("fetch", Scope::Shared, Some(4714), 1),
                server("web", Scope::Session, None, 2),
            ],
        }
    }

    #[test]
    fn the_daemon_status_shows_windows_and_servers_with_their_scope() {
        let report = DaemonReport { done: None, cut: 0, daemon: Some(daemon()), now: 1300 };
        let expected = "\
daemon 4711: plugbay 0.1.0, for 5 min, 14.0 MB

  WINDOW       MODE  FOR     PID  FOLDER
  claude-code  all   5 min  4712  /home/ann/web
  –            –     5 min  4713  /home/ann/web, with /c.jsonc

  SERVER  STATE  SCOPE    PROCESSES   PID   MEMORY  WHY
  files   ready  project          1  4715  52.0 MB  in /home/ann/web, browser
  fetch   ready  shared           1  4714  52.0 MB  browser
  web     ready  session     2 of 8                 browser
";
        assert_eq!(report.human(Style::PLAIN), expected);
    }

    #[test]
    fn a_daemon_that_has_ended_is_told_from_none() {
        let text =
            |done, cut, daemon| DaemonReport { done: Some(done), cut, daemon, now: 0 }.human(Style::PLAIN);
        let ended = (text(Done::Nothing, 0, None), text(Done::Stopped, 0, None));
        assert_eq!(ended, (NOTHING.to_owned(), STOPPED.to_owned()));
        assert!(text(Done::Stopped, 1, None).contains("\n1 call was cut"));
        assert!(text(Done::Stopped, 2, None).contains("\n2 calls were cut"));
        assert!(text(Done::Restarted, 0, Some(daemon())).starts_with(RESTARTED));
        assert!(text(Done::Started, 0, Some(daemon())).starts_with(STARTED));
    }
}
