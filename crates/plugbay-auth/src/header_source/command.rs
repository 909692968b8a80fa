//! A program that prints headers, run without a shell.

use std::{fmt, io, process::Stdio, time::Duration};

use plugbay_core::{credentials::HeadersCommand, failure::Failure, secret::Secret};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    time::timeout,
};

use super::headers;

/// How long the program may take.
const TIME: Duration = Duration::from_secs(10);
/// Limit of its output, in bytes.
const LONGEST: usize = 64 * 1024;
/// How much of the end of its stderr is kept.
const STDERR: usize = 4 * 1024;
/// How many lines of that a failure shows.
const LINES: usize = 4;
const LINE: usize = 200;

pub(super) struct Program {
    command: HeadersCommand,
    /// For scripts that serve several servers; includes the names that Claude Code uses.
    environment: [(&'static str, String); 4],
}

impl Program {
    pub(super) fn new(command: HeadersCommand, server: &str, url: &str) -> Self {
        let environment = [
            ("PLUGBAY_SERVER_NAME", server.to_owned()),
            ("PLUGBAY_SERVER_URL", url.to_owned()),
            ("CLAUDE_CODE_MCP_SERVER_NAME", server.to_owned()),
            ("CLAUDE_CODE_MCP_SERVER_URL", url.to_owned()),
        ];
        Self { command, environment }
    }

    pub(super) async fn run(&self) -> Result<Vec<(String, Secret)>, Failure> {
        let failed = |why: &str, stderr: Vec<String>| Failure::new(format!("{self}: {why}"), stderr);
        let mut child = self.start().map_err(|error| failed(&error.to_string(), Vec::new()))?;
        let group = Group(child.id());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut said = Vec::new();
        let ended =
            async { tokio::join!(start_of(stdout, LONGEST), end_of(stderr, &mut said), child.wait()) };
        let ended = timeout(TIME, ended).await;
        drop(group);
        let stderr = lines(&said);
        let Ok((stdout, (), status)) = ended else {
            return Err(failed(&format!("it did not end within {} s", TIME.as_secs()), stderr));
        };
        let Some(stdout) = stdout else {
            return Err(failed(&format!("it printed more than {} KiB", LONGEST / 1024), stderr));
        };
        let status = status.map_err(|error| failed(&error.to_string(), Vec::new()))?;
        if !status.success() {
            return Err(failed(&format!("it ended with {status}"), stderr));
        }
        let text = String::from_utf8(stdout).map_err(|_| failed("it did not print text", stderr.clone()))?;
        headers::of_json(&text)
            .map_err(|why| failed(&format!("what it printed cannot be used: {why}"), stderr))
    }

    fn start(&self) -> io::Result<Child> {
        let HeadersCommand { program, args, folder, .. } = &self.command;
        let mut command = Command::new(program);
        command.args(args).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // An entry that is only tried has no folder.
        if let Some(folder) = folder.as_ref().filter(|folder| folder.is_dir()) {
            command.current_dir(folder);
        }
        // Its own group, so that what it has started ends with it.
        #[cfg(unix)]
        command.process_group(0);
        command.spawn()
    }

    pub(super) fn remedy(&self) -> String {
        let HeadersCommand { written, folder, .. } = &self.command;
        let place = folder.as_ref().map(|folder| format!(" in {}", folder.display())).unwrap_or_default();
        format!(
            "run `{written}`{place}: it must print a JSON object with headers that the server accepts, such as \
             {{\"Authorization\": \"Bearer …\"}}"
        )
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the command `{}`", self.command.written)
    }
}

/// The processes of one run, killed when the run ends, complete or not.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.0.and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)) {
            // Usually they have already ended.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// The whole output; `None` if it is longer than this.
async fn start_of(pipe: Option<impl AsyncRead + Unpin>, longest: usize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut pipe = pipe?.take(longest as u64 + 1);
    pipe.read_to_end(&mut text).await.ok()?;
    (text.len() <= longest).then_some(text)
}

/// Reads the output and keeps its end.
async fn end_of(pipe: Option<impl AsyncRead + Unpin>, text: &mut Vec<u8>) {
    let Some(mut pipe) = pipe else { return };
    let mut chunk = [0; 1024];
    while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
        text.extend_from_slice(&chunk[..length]);
        text.drain(..text.len().saturating_sub(STDERR));
    }
}

/// The last lines, short and without control characters.
fn lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let clean = |line: &str| -> String {
        let plain = without_escapes(line);
        plain.chars().filter(|char| !char.is_control()).take(LINE).collect::<String>().trim().to_owned()
    };
    let lines: Vec<String> = text.lines().map(clean).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].to_vec()
}

/// The line without terminal colour sequences.
fn without_escapes(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let end = part.find(|char: char| char.is_ascii_alphabetic()).map_or(part.len(), |end| end + 1);
        text + &part[end..]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_of_a_program_is_shown_short_and_clean() {
        let text = format!("one\n\ntwo\n\u{1b}[31;1mred\u{1b}[0m \u{7}bell\n{}\nfour\n", "x".repeat(500));
        let shown = lines(text.as_bytes());
        assert_eq!(shown[..2], ["two", "red bell"]);
        assert_eq!((shown[2].len(), shown[3].as_str()), (LINE, "four"));
    }
}
