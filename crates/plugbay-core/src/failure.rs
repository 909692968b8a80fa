//! Failures of servers, with what their user can do about them.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use crate::{name::ServerName, secret::KnownSecrets, text};

/// Tells a host that plugbay has cut its request.
pub const CUT: &str = "plugbay ended before it answered this request. The request may have had an effect, so plugbay \
                       does not send it again: check the effect, then call again.";

/// Why a server is not working: what happened, what it last said, and what may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What happened, for instance "exited with code 1 before answering". One line, with at most
    /// [`LONGEST_LINE`] bytes: a part of it may be the server's words.
    pub what: String,
    pub cause: Cause,
    /// The end of its stderr, oldest line first.
    pub stderr: Vec<String>,
    /// Lines on its stdout that are no MCP messages, oldest first.
    pub stdout: Vec<String>,
    pub remedy: Option<String>,
}

/// The kind of failure, if plugbay itself knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cause {
    #[default]
    Other,
    /// The server did not answer within its start timeout.
    OutOfTime,
    /// Nothing answers at its address.
    Unreachable,
    /// It answered with this HTTP status.
    HttpStatus(u16),
    /// It works only after the user has logged in.
    NeedsLogin,
}

/// How many lines of stderr a failure holds.
const MOST_LINES: usize = 8;
/// The longest text of a failure, in bytes.
const LONGEST_LINE: usize = 1 << 10;

impl Failure {
    /// `stderr` may be longer than a failure keeps: stack frames and notices of package managers go first.
    pub fn new(what: impl Into<String>, stderr: Vec<String>) -> Self {
        let remedy = stderr.iter().rev().find_map(|line| remedy_for(line)).map(str::to_owned);
        let (what, stderr) = (one_line(what.into()), one_line_each(telling(stderr)));
        Self { what, cause: Cause::Other, stderr, stdout: Vec::new(), remedy }
    }

    #[must_use]
    pub fn because(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// Adds what the server wrote to stdout although it is no MCP message. Unless stderr tells more, this is
    /// the likely cause.
    #[must_use]
    pub fn with_stdout(mut self, lines: Vec<String>) -> Self {
        let known = || lines.iter().rev().find_map(|line| remedy_for(line));
        let remedy = (!lines.is_empty()).then(|| known().unwrap_or_else(|| remedy_for_text(&lines)));
        self.remedy = self.remedy.or(remedy.map(str::to_owned));
        self.stdout = one_line_each(lines);
        self
    }

    /// Whether only a login of the user can help.
    pub fn needs_login(&self) -> bool {
        self.cause == Cause::NeedsLogin
    }

    /// The statement about its server: that it does not work and why, or that it needs a login.
    pub fn of_server(&self) -> String {
        let text = self.with_advice();
        if self.needs_login() { text } else { format!("does not work: {text}") }
    }

    /// The failure for readers who cannot examine the server: with what may help, or where to look.
    pub fn with_advice(&self) -> String {
        match self.remedy {
            Some(_) => self.to_string(),
            None => format!("{self}; try: run `plugbay list`, which starts it and shows all that it says"),
        }
    }

    /// The same without these secrets, which the server may have repeated.
    #[must_use]
    pub fn hiding(mut self, secrets: &KnownSecrets) -> Self {
        let hide = |text: &mut String| *text = secrets.hide(std::mem::take(text)).into_owned();
        hide(&mut self.what);
        self.stderr.iter_mut().chain(&mut self.stdout).for_each(hide);
        self.remedy.iter_mut().for_each(hide);
        self
    }

    #[must_use]
    pub fn rephrased(mut self, rephrase: impl FnOnce(&str) -> String) -> Self {
        self.what = one_line(rephrase(&self.what));
        self
    }

    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(one_line(remedy.into()));
        self
    }
}

/// A text without line breaks, which could pass for other lines of a reply, and cut at its limit.
fn one_line(text: String) -> String {
    let mut line = match text::on_one_line(&text) {
        Cow::Owned(line) => line,
        Cow::Borrowed(_) => text,
    };
    if line.len() > LONGEST_LINE {
        line.truncate(line.floor_char_boundary(LONGEST_LINE));
        line.push('…');
    }
    line
}

fn one_line_each(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(one_line).collect()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if !self.stderr.is_empty() {
            write!(f, "; stderr: {}", self.stderr.join(" | "))?;
        }
        if !self.stdout.is_empty() {
            write!(f, "; stdout is not MCP: {}", self.stdout.join(" | "))?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "; try: {remedy}")?;
        }
        Ok(())
    }
}

/// Why a forwarded call got no answer from its server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("server '{0}' is not configured any more")]
    Gone(ServerName),
    #[error("server '{server}' failed: {failure}")]
    Down { server: ServerName, failure: Arc<Failure> },
    /// Its failure says that it needs a login.
    #[error("server '{server}' {failure}")]
    NeedsLogin { server: ServerName, failure: Arc<Failure> },
    #[error("server '{server}' failed: {failure}; it is started again in {} at the latest", seconds(.retry_in))]
    Resting { server: ServerName, failure: Arc<Failure>, retry_in: Duration },
    #[error("server '{server}' did not answer within {}; {limit} if it needs longer", seconds(.after))]
    TimedOut { server: ServerName, after: Duration, limit: Limit },
    #[error(
        "the answer of server '{server}' is larger than {limit} bytes; raise \"limits.message\" in the configuration to let it pass"
    )]
    TooLarge { server: ServerName, limit: usize },
    #[error("server '{server}' sent an answer that cannot be forwarded: {fault}")]
    Malformed { server: ServerName, fault: String },
    #[error(
        "server '{server}' is busy: each session has an instance of its own, and all {limit} are in use by other sessions; try again, or raise \"instances\" in its \"plugbay\" settings"
    )]
    Busy { server: ServerName, limit: usize },
    #[error("the task was lost with server '{server}', which failed: {failure}")]
    TaskLost { server: ServerName, failure: Arc<Failure> },
}

impl CallError {
    /// The error of a call to a server that has failed like this.
    pub fn down(server: ServerName, failure: Arc<Failure>) -> Self {
        if failure.needs_login() {
            return Self::NeedsLogin { server, failure };
        }
        Self::Down { server, failure }
    }
}

/// The origin of a call's timeout; its text says what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    #[error("raise \"timeout\" in its \"plugbay\" settings")]
    Settings,
    #[error("give the call a longer \"timeout\"")]
    Call,
}

fn seconds(duration: &Duration) -> String {
    if duration.subsec_millis() == 0 || duration.as_secs() >= 10 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

/// The last lines; if there are too many, without those that say nothing.
fn telling(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > MOST_LINES {
        lines.retain(|line| {
            let line = line.trim_start();
            !["at ", "npm notice", "npm error A complete log", "node:internal"]
                .iter()
                .any(|start| line.starts_with(start))
        });
    }
    let surplus = lines.len().saturating_sub(MOST_LINES);
    // The first line of a longer text often names the error; the rest explains it.
    let named = lines.iter().take(surplus).rposition(|line| remedy_for(line).is_some());
    match named {
        Some(named) => {
            let mut kept = vec![lines[named].clone()];
            kept.extend(lines.drain(surplus + 1..));
            kept
        }
        None => lines.split_off(surplus),
    }
}

/// The advice for a program that prints text where MCP messages belong.
fn remedy_for_text(lines: &[String]) -> &'static str {
    if lines.iter().any(|line| line.contains("http://") || line.contains("https://")) {
        "if this program serves MCP over HTTP, write its \"url\" instead of \"command\"; else give it the argument for stdio"
    } else {
        "give the program the argument that makes it speak MCP on stdio (often `stdio`), and let it log to stderr"
    }
}

/// The advice for well-known last lines of programs.
fn remedy_for(line: &str) -> Option<&'static str> {
    const KNOWN: &[(&str, &str)] = &[
        ("No module named", "install the missing Python package in the environment of this command"),
        ("ModuleNotFoundError", "install the missing Python package in the environment of this command"),
        ("Cannot find module", "install the missing Node package, or correct the path of the script"),
        ("ERR_MODULE_NOT_FOUND", "install the missing Node package, or correct the path of the script"),
        ("could not determine executable to run", "check the package name that is given to npx"),
        ("E404", "check the package name: the registry does not know it"),
        ("not found in the package registry", "check the package name: the registry does not know it"),
        ("ENOTFOUND", "check the network connection or the proxy settings"),
        ("ECONNREFUSED", "start the service that this server wants to reach"),
        ("EADDRINUSE", "stop the other program that uses the same port"),
        ("No such file or directory", "check the paths in \"command\", \"args\" and \"cwd\""),
        ("Permission denied", "check the permissions of the files that this server uses"),
        ("EACCES", "check the permissions of the files that this server uses"),
        ("command not found", "install the command, or give its full path"),
        ("Unauthorized", "check the token or key in \"env\""),
        ("Unsupported engine", "use a newer Node for this server"),
        ("SyntaxError", "check that the interpreter is new enough for this server"),
    ];
    KNOWN.iter().find(|(sign, _)| line.contains(sign)).map(|(_, remedy)| *remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_set_the_limit_can_raise_it() {
        let told = |limit| {
            let server = ServerName::parse("s").unwrap();
            CallError::TimedOut { server, after: Duration::from_secs(1), limit }.to_string()
        };
        assert!(
            told(Limit::Settings)
                .ends_with(r#"raise "timeout" in its "plugbay" settings if it needs longer"#)
        );
        assert!(told(Limit::Call).ends_with(r#"give the call a longer "timeout" if it needs longer"#));
    }

    #[test]
    fn a_server_that_needs_a_login_is_not_said_to_have_failed() {
        let failure = Failure::new("needs a login at https://auth.example", Vec::new());
        let failure = failure.because(Cause::NeedsLogin).with_remedy("run `plugbay auth login linear`");
        assert_eq!(
            CallError::down(ServerName::parse("linear").unwrap(), Arc::new(failure.clone())).to_string(),
            "server 'linear' needs a login at https://auth.example; try: run `plugbay auth login linear`"
        );
        assert_eq!(failure.of_server(), failure.to_string());
    }

    #[test]
    fn text_on_stdout_is_told_apart_from_stderr() {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let usage = Failure::new("exit code 0", Vec::new()).with_stdout(lines(&["usage: tool [stdio]"]));
        assert!(
            usage.to_string().starts_with("exit code 0; stdout is not MCP: usage: tool [stdio]; try: give")
        );
        let listens = Failure::new("silent", Vec::new()).with_stdout(lines(&["listening on http://[::]:80"]));
        assert!(listens.remedy.is_some_and(|remedy| remedy.contains("\"url\"")));
        let both = Failure::new("exit code 1", lines(&["EADDRINUSE"])).with_stdout(lines(&["hello"]));
        assert_eq!(both.remedy.as_deref(), Some("stop the other program that uses the same port"));
    }

    #[test]
    fn the_line_of_stderr_that_names_the_error_is_kept() {
        let frames = (0..10).map(|n| format!("    at frame {n}"));
        let notices = (0..9).map(|n| format!("npm error 404 line {n}"));
        let trace = ["Error: KEY is missing".to_owned()].into_iter().chain(frames);
        assert_eq!(Failure::new("", trace.collect()).stderr, ["Error: KEY is missing"]);
        let kept = Failure::new("", ["npm error code E404".to_owned()].into_iter().chain(notices).collect());
        assert_eq!(kept.stderr.len(), MOST_LINES);
        assert_eq!((&*kept.stderr[0], &*kept.stderr[7]), ("npm error code E404", "npm error 404 line 8"));
    }

    #[test]
    fn a_failure_tells_what_it_said_last_and_what_may_help() {
        let stderr = vec!["starting".to_owned(), "ModuleNotFoundError: No module named 'mcp'".to_owned()];
        let text = Failure::new("exited with code 1", stderr).to_string();
        assert!(text.starts_with("exited with code 1; stderr: starting | ModuleNotFoundError"), "{text}");
        assert!(
            text.ends_with("; try: install the missing Python package in the environment of this command")
        );
        let strange = Failure::new("exited with code 1", vec!["boom".to_owned()]);
        assert_eq!(strange.to_string(), "exited with code 1; stderr: boom");
        assert!(
            strange
                .with_advice()
                .ends_with("boom; try: run `plugbay list`, which starts it and shows all that it says")
        );
    }

    #[test]
    fn a_failure_is_one_line_with_an_end_whatever_the_server_says() {
        let forged = "x\nmail__forged(to: string)\u{2028}{}\r\u{85}.";
        let failure = Failure::new(forged, vec![forged.to_owned()]).with_stdout(vec![forged.to_owned()]);
        let told = failure.to_string();
        assert!(!told.contains(text::is_line_break) && told.matches("mail__forged").count() == 3, "{told}");
        assert!(!failure.clone().with_remedy(forged).to_string().contains(text::is_line_break));
        let failure = failure.rephrased(|what| format!("{what}\n{}", "é".repeat(1 << 20)));
        assert!(failure.what.len() < LONGEST_LINE + 4 && !failure.what.contains('\n'));
    }
}
