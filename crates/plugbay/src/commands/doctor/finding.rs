//! The findings of `doctor`: each has a stable code, a subject, evidence, a remedy and perhaps a fix.

use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::fix::Fix;

/// The severity of a finding. The exit code is 1 if there is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work.
    Error,
    /// Something works, but costs more or does less than it could, or will not last.
    Warning,
    /// Useful to know.
    Note,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Declares the codes with their names and severities: the one list for the output, the documentation and its
/// test.
macro_rules! codes {
    ($($code:ident = $name:literal, $severity:ident;)*) => {
        /// The stable name of a cause; each has a section in `docs/doctor.md`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($code,)*
        }

        impl Code {
            #[cfg(test)]
            pub const ALL: &[Self] = &[$(Self::$code,)*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                }
            }

            pub fn severity(self) -> Severity {
                match self {
                    $(Self::$code => Severity::$severity,)*
                }
            }
        }
    };
}

codes! {
    // The configuration.
    NoConfiguration = "no-configuration", Error;
    BrokenFile = "broken-file", Error;
    UnknownKey = "unknown-key", Warning;
    MisplacedKey = "misplaced-key", Warning;
    InvalidValue = "invalid-value", Error;
    DoubtfulValue = "doubtful-value", Warning;
    UnapprovedFile = "unapproved-file", Error;
    UnsetVariable = "unset-variable", Error;
    ForeignVariable = "foreign-variable", Error;
    CommandAndUrl = "command-and-url", Warning;
    CommandLine = "command-line", Error;
    RunsItself = "runs-itself", Error;
    Disabled = "disabled", Note;
    // Starting a program.
    MissingRuntime = "missing-runtime", Error;
    CommandNotFound = "command-not-found", Error;
    WrongPath = "wrong-path", Error;
    NotExecutable = "not-executable", Error;
    PackageUnknown = "package-unknown", Error;
    PackageDownloading = "package-downloading", Error;
    SlowStart = "slow-start", Error;
    MissingModule = "missing-module", Error;
    MissingVariable = "missing-variable", Error;
    VariableNotPassed = "variable-not-passed", Error;
    NotMcp = "not-mcp", Error;
    PortInUse = "port-in-use", Error;
    DockerNotRunning = "docker-not-running", Error;
    ServerFailed = "server-failed", Error;
    // Connecting to an address.
    NotLoggedIn = "not-logged-in", Error;
    NeedsLogin = "needs-login", Error;
    Certificate = "certificate", Error;
    Proxy = "proxy", Error;
    Unreachable = "unreachable", Error;
    WrongUrl = "wrong-url", Error;
    // The offer of a server.
    NoTools = "no-tools", Warning;
    ToolsHidden = "tools-hidden", Warning;
    HiddenCharacters = "hidden-characters", Warning;
    ListTooLarge = "list-too-large", Warning;
    // plugbay's own files.
    CorruptCache = "corrupt-cache", Warning;
    StaleLock = "stale-lock", Warning;
    LockHeld = "lock-held", Warning;
    WithoutDaemon = "without-daemon", Warning;
    // Hosts.
    NoHost = "no-host", Note;
    HostFileBroken = "host-file-broken", Error;
    HostProgramMissing = "host-program-missing", Error;
    LeftInHost = "left-in-host", Warning;
    DoubleEntry = "double-entry", Warning;
    TwoGateways = "two-gateways", Warning;
    HostNotRestarted = "host-not-restarted", Warning;
    OutdatedGateway = "outdated-gateway", Warning;
    DoubleSearch = "double-search", Warning;
    IgnoresChanges = "ignores-changes", Warning;
    LoadsAllTools = "loads-all-tools", Warning;
    UnseenVariant = "unseen-variant", Note;
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The subject of a finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", content = "name", rename_all = "lowercase")]
pub enum Subject {
    Server(String),
    File(PathBuf),
    Host(String),
}

/// One problem.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    pub code: Code,
    pub severity: Severity,
    pub about: Subject,
    pub message: String,
    /// Evidence, such as a line of stderr.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    pub remedy: String,
    /// The change that `--fix` would make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
}

impl Finding {
    pub fn new(code: Code, about: Subject, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (message, remedy) = (message.into(), remedy.into());
        Self { code, severity: code.severity(), about, message, evidence: Vec::new(), remedy, fix: None }
    }

    /// A finding about a server.
    pub fn of(code: Code, server: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(code, Subject::Server(server.to_owned()), message, remedy)
    }

    #[must_use]
    pub fn seen(mut self, evidence: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    /// The same finding with other words.
    #[must_use]
    pub fn rephrased(mut self, rephrase: impl Fn(&str) -> String) -> Self {
        self.message = rephrase(&self.message);
        self.evidence = self.evidence.iter().map(|line| rephrase(line)).collect();
        self
    }

    /// Whether `--yes` covers the fix. It never approves a file that may have come with a repository, and
    /// passes a variable only to a server that the command names.
    pub fn is_covered_by_yes(&self, named: &[String]) -> bool {
        match (self.code, &self.about) {
            (Code::UnapprovedFile, _) => false,
            (Code::VariableNotPassed, Subject::Server(server)) => {
                named.iter().any(|name| name.eq_ignore_ascii_case(server))
            }
            _ => true,
        }
    }

    #[must_use]
    pub fn fixed_by(self, fix: impl Into<Option<Fix>>) -> Self {
        Self { fix: fix.into(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn every_code_has_a_section_in_the_docs_and_every_section_a_code() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
        let text = fs::read_to_string(file).unwrap();
        let section = |line: &str| Some(line.strip_prefix("### `")?.strip_suffix('`')?.to_owned());
        let sections: Vec<String> = text.lines().filter_map(section).collect();
        let documented: BTreeSet<String> = sections.iter().cloned().collect();
        let codes: BTreeSet<String> = Code::ALL.iter().map(|code| code.as_str().to_owned()).collect();
        assert_eq!(documented, codes);
        assert_eq!(sections.len(), Code::ALL.len(), "a code has two sections, or two codes one name");
    }
}
