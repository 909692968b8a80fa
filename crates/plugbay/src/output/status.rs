//! Running gateways, their hosts and their servers.

use plugbay_core::{scope::Scope, surface::Problem};

use super::{
    Style, View,
    explain::trouble,
    one_line,
    table::{Cell, Column, Table, wrap},
    units::{age, count},
};
use crate::{
    commands::status::Status,
    error::StartFailure,
    status_file::{GatewayStatus, HostGroup, ServerStatus, Transport},
};

const NOTHING: &str = "\
no gateway runs: a host starts `plugbay serve` when it opens
an open window starts the daemon again with its next message
`plugbay list` shows whether every server works
`plugbay hosts` shows which mode each host gets
";
const INDENT: usize = 2;

impl View for Status {
    fn human(&self, style: Style) -> String {
        if self.gateways.is_empty() {
            return NOTHING.to_owned();
        }
        let gateways: Vec<String> =
            self.gateways.iter().map(|gateway| gateway.text(self.now, style)).collect();
        gateways.join("\n")
    }
}

impl GatewayStatus {
    fn text(&self, now: u64, style: Style) -> String {
        let mut parts = vec![self.title(now, style)];
        if self.is_unused() {
            return parts.concat();
        }
        // The absence of a daemon is already among the problems.
        let is_problem =
            |reason: &&String| self.problems.iter().any(|problem| problem.what.contains(*reason));
        if let Some(reason) = self.without_daemon.as_ref().filter(|reason| !is_problem(reason)) {
            parts.push(format!("  without the daemon: {}\n", one_line(reason)));
        }
        if !self.hosts.is_empty() {
            parts.push(self.host_table(style));
        }
        if !self.servers.is_empty() {
            parts.push(self.server_table(style));
        }
        parts.extend(self.servers.iter().filter_map(|server| server.explanation(style)));
        parts.extend(self.servers.iter().filter_map(|server| server.hidden_characters(style)));
        parts.extend(self.servers.iter().filter_map(ServerStatus::left_out));
        parts.extend(self.problems.iter().map(|problem| explained(problem, style)));
        parts.join("\n")
    }

    fn title(&self, now: u64, style: Style) -> String {
        let transport = match &self.transport {
            Transport::Stdio => "stdio",
            Transport::Http { address } => address,
            Transport::Daemon => "daemon",
        };
        let mut parts = vec![transport.to_owned(), format!("for {}", age(now.saturating_sub(self.since)))];
        parts.push(format!("in {}", self.folder));
        parts.extend(self.config.as_ref().map(|file| format!("with {file}")));
        parts.extend(self.remotes.iter().map(|remote| format!("remote {remote}")));
        parts.extend(self.profile.as_ref().map(|profile| format!("profile {profile}")));
        if self.is_unused() {
            parts.push("no host".to_owned());
        } else if self.hosts.is_empty() {
            parts.push("no host yet".to_owned());
        }
        let name = format!("gateway {}:", self.pid);
        let room = style.width.unwrap_or(usize::MAX).saturating_sub(2 * INDENT);
        let lines = wrap(&format!("{name} {}", one_line(&parts.join(", "))), room);
        let text = lines.join(&format!("\n{}", " ".repeat(2 * INDENT)));
        format!("{}\n", text.replacen(&name, &style.bold(&name), 1))
    }

    fn host_table(&self, style: Style) -> String {
        let columns = vec![
            Column::flexible("HOST"),
            Column::flexible("VERSION"),
            Column::flexible("PROFILE"),
            Column::left("ERA"),
            Column::left("MODE"),
            Column::flexible("WHY"),
        ];
        let mut table = Table::new(columns).indented(INDENT);
        for host in &self.hosts {
            table.row(host.cells());
        }
        table.render(style)
    }

    fn server_table(&self, style: Style) -> String {
        let columns = vec![
            Column::left("SERVER"),
            Column::left("STATE"),
            Column::right("TOOLS"),
            Column::right("PID"),
            Column::left("SCOPE"),
            Column::flexible("WHY"),
        ];
        let mut table = Table::new(columns).indented(INDENT);
        for server in &self.servers {
            table.row(server.cells());
        }
        table.render(style)
    }
}

impl HostGroup {
    fn cells(&self) -> Vec<Cell> {
        let host = &self.host;
        let known = |text: &Option<String>| text.as_deref().map_or_else(|| "–".to_owned(), one_line);
        let name = known(&host.name);
        let many = if self.count > 1 { format!("{name} × {}", count(self.count)) } else { name };
        vec![
            Cell::painted(many, Style::bold),
            known(&host.version).into(),
            one_line(&host.profile).into(),
            super::era(host.era).into(),
            host.mode.map_or_else(|| "–".to_owned(), |mode| mode.to_string()).into(),
            host.why
                .clone()
                .unwrap_or_else(|| "chosen when every server has connected or failed".to_owned())
                .into(),
        ]
    }
}

impl ServerStatus {
    fn cells(&self) -> Vec<Cell> {
        vec![
            one_line(&self.name).into(),
            super::state(self.state),
            self.tools.map_or_else(|| "–".to_owned(), count).into(),
            self.pid.map(|pid| pid.to_string()).unwrap_or_default().into(),
            self.scope_text().into(),
            self.why.as_deref().map(one_line).unwrap_or_default().into(),
        ]
    }

    /// The scope, with the number of processes if there are several.
    fn scope_text(&self) -> String {
        let word = self.scope.map(Scope::word).unwrap_or_default();
        if self.instances > 1 { format!("{word} × {}", count(self.instances)) } else { word.to_owned() }
    }

    fn left_out(&self) -> Option<String> {
        let (indent, name, what) = (" ".repeat(INDENT), one_line(&self.name), self.left_out.as_deref()?);
        Some(format!("{indent}{name}: its lists are too large: plugbay leaves out {}\n", one_line(what)))
    }

    fn explanation(&self, style: Style) -> Option<String> {
        let reason = trouble(self.trouble.as_ref()?, 2 * INDENT, style);
        Some(format!("{}{}\n{reason}", " ".repeat(INDENT), style.bad(&one_line(&self.name))))
    }
}

impl ServerStatus {
    fn hidden_characters(&self, style: Style) -> Option<String> {
        if self.hidden.is_empty() {
            return None;
        }
        let lines = self.hidden.iter().map(|line| format!("{}{}\n", " ".repeat(3 * INDENT), one_line(line)));
        Some(format!(
            "{}{}\n{}hidden characters in its definitions\n{}",
            " ".repeat(INDENT),
            style.warn(&one_line(&self.name)),
            " ".repeat(2 * INDENT),
            lines.collect::<Vec<_>>().concat(),
        ))
    }
}

fn explained(problem: &Problem, style: Style) -> String {
    let place = problem.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    let reason = StartFailure {
        reason: format!("{}{place}", problem.what),
        stderr: Vec::new(),
        stdout: Vec::new(),
        remedy: problem.remedy.clone(),
        ..StartFailure::default()
    };
    let title = if problem.urgent { style.bad("configuration") } else { style.warn("configuration") };
    format!("{}{title}\n{}", " ".repeat(INDENT), trouble(&reason, 2 * INDENT, style))
}

#[cfg(test)]
mod tests {
    use plugbay_core::{era::Era, exposure::Mode, server_state::ServerState};
    use plugbay_downstream::ConnectedHost;

    use super::*;

    fn gateway() -> GatewayStatus {
        let host = ConnectedHost {
            name: Some("claude-code".to_owned()),
            version: Some("2.0\x1b[2J".to_owned()),
            profile: "claude-code".to_owned(),
            era: Era::Legacy,
            mode: Some(Mode::All),
            why: Some("the host keeps tools out of context itself".to_owned()),
        };
        let unnamed = ConnectedHost {
            name: None,
            version: None,
            profile: "unknown".to_owned(),
            era: Era::Modern,
            mode: None,
            why: None,
        };
        let server = |name: &str, state, tools, pid| ServerStatus {
            name: name.to_owned(),
            state,
            tools,
            pid,
            scope: (state != ServerState::Error).then_some(Scope::Session),
            why: (state != ServerState::Error).then(|| "browser".to_owned()),
            instances: tools.unwrap_or_default().min(3),
            instance_limit: Some(8),
            folder: None,
            remote: false,
            hidden: Vec::new(),
            left_out: (name == "notes").then(|| "2 definitions of more than 1 MiB".to_owned()),
            trouble: (state == ServerState::Error).then(|| StartFailure {
                reason: "exited with code 1".to_owned(),
                stderr: vec!["no port".to_owned()],
                stdout: vec![],
                remedy: Some("open it".to_owned()),
                ..StartFailure::default()
            }),
        };
        GatewayStatus {
            pid: 4711,
            since: 1000,
            transport: Transport::Http { address: "http://127.0.0.1:8080/mcp".to_owned() },
            folder: "/home/ann".to_owned(),
            config: None,
            without_daemon: None,
            remotes: vec![],
            profile: None,
            hosts: vec![HostGroup { host, count: 3 }, HostGroup { host: unnamed, count: 1 }],
            servers: vec![
                server("calc", ServerState::Ready, Some(6), Some(4712)),
                server("db", ServerState::Error, None, None),
                server("notes", ServerState::Idle, Some(1200), None),
            ],
            problems: vec![Problem {
                what: "unknown key `mod`".to_owned(),
                place: Some("/c.jsonc:1:3".to_owned()),
                remedy: Some("did you mean `mode`?".to_owned()),
                urgent: false,
            }],
        }
    }

    #[test]
    fn the_status_shows_hosts_servers_and_failures() {
        let bare = GatewayStatus {
            transport: Transport::Stdio,
            config: Some("/c.jsonc".to_owned()),
            without_daemon: None,
            hosts: vec![],
            servers: vec![],
            problems: vec![],
            ..gateway()
        };
        let remotes = vec!["https://team.example".to_owned()];
        let left = GatewayStatus { transport: Transport::Daemon, remotes, hosts: vec![], ..gateway() };
        assert!(gateway().has_failed() && !left.has_failed(), "no window needs it");
        let status = Status { gateways: vec![gateway(), bare, left], now: 1300 };
        let expected = "\
gateway 4711: http://127.0.0.1:8080/mcp, for 5 min, in /home/ann

  HOST             VERSION  PROFILE      ERA     MODE  WHY
  claude-code × 3  2.0      claude-code  legacy  all   the host keeps tools out of context itself
  –                –        unknown      modern  –     chosen when every server has connected or failed

  SERVER  STATE  TOOLS   PID  SCOPE        WHY
  calc    ready      6  4712  session × 3  browser
  db      error      –
  notes   idle   1,200        session × 3  browser

  db
    exited with code 1
    stderr  no port
    try     open it

  notes: its lists are too large: plugbay leaves out 2 definitions of more than 1 MiB

  configuration
    unknown key `mod` (/c.jsonc:1:3)
    try     did you mean `mode`?

gateway 4711: stdio, for 5 min, in /home/ann, with /c.jsonc, no host yet

gateway 4711: daemon, for 5 min, in /home/ann, remote https://team.example, no host
";
        assert_eq!(status.human(Style::PLAIN), expected);
    }

    #[test]
    fn a_gateway_status_survives_its_status_file() {
        let text = serde_json::to_string(&gateway()).unwrap();
        assert_eq!(serde_json::from_str::<GatewayStatus>(&text).unwrap(), gateway());
    }
}
