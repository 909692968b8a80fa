//! Lines of logs.

use super::{Output, Style, View, clean_line, json_line};
use crate::{commands::logs::LogLines, log_files::Line};

impl View for LogLines {
    fn human(&self, style: Style) -> String {
        self.lines.iter().map(|line| text(line, self.of_one, style)).collect()
    }
}

impl Output {
    /// Prints lines as they come: as text, or each as one JSON object.
    pub fn show_lines(&self, lines: &[Line], of_one: bool) {
        for line in lines {
            if self.is_json() {
                self.raw(json_line(line));
            } else {
                self.raw(text(line, of_one, self.out));
            }
        }
    }
}

/// `2026-11-17 08:30:05 github: text`; lines of plugbay are dim.
fn text(line: &Line, of_one: bool, style: Style) -> String {
    let seconds = line.time.split('.').next().unwrap_or_default().replace('T', " ");
    let server = line.server.as_deref().filter(|_| !of_one);
    let who = match (server, line.source.as_str()) {
        (None, "plugbay") => "plugbay: ".to_owned(),
        (None, _) => String::new(),
        (Some(server), "plugbay") => format!("{server} (plugbay): "),
        (Some(server), _) => format!("{server}: "),
    };
    format!(
        "{} {}{}\n",
        style.dim(&clean_line(&seconds)),
        style.bold(&clean_line(&who)),
        clean_line(&line.text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_has_its_time_and_server_and_steers_no_terminal() {
        let line = |server: Option<&str>, source: &str| Line {
            time: "2026-11-17T08:30:05.120Z".to_owned(),
            server: server.map(str::to_owned),
            gateway: 7,
            source: source.to_owned(),
            text: "\x1b[2Jgone\x1b[0m".to_owned(),
        };
        let shown = |line: &Line, of_one| text(line, of_one, Style::PLAIN);
        assert_eq!(shown(&line(Some("db"), "stderr"), false), "2026-11-17 08:30:05 db: gone\n");
        assert_eq!(shown(&line(Some("db"), "plugbay"), false), "2026-11-17 08:30:05 db (plugbay): gone\n");
        assert_eq!(shown(&line(Some("db"), "stderr"), true), "2026-11-17 08:30:05 gone\n");
        assert_eq!(shown(&line(Some("db"), "plugbay"), true), "2026-11-17 08:30:05 plugbay: gone\n");
        assert_eq!(shown(&line(None, "plugbay"), false), "2026-11-17 08:30:05 plugbay: gone\n");
    }
}
