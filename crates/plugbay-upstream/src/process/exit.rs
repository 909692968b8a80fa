//! How a process ended, as a shell reports it.

use std::fmt;

use rustix::process::{Signal, WaitIdStatus};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    /// The number of the signal that ended it.
    Signal(i32),
    /// The system gave no status: another process reaped it, or it cannot be killed.
    Unknown,
}

impl Exit {
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl From<WaitIdStatus> for Exit {
    fn from(status: WaitIdStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => match NAMES.iter().find(|(signal, _)| signal.as_raw() == number) {
                Some((_, name)) => write!(f, "killed by {name}"),
                None => write!(f, "killed by signal {number}"),
            },
            Self::Unknown => f.write_str("unknown exit status"),
        }
    }
}

/// The signals that end processes in practice; their numbers differ between systems.
const NAMES: [(Signal, &str); 19] = [
    (Signal::HUP, "SIGHUP"),
    (Signal::INT, "SIGINT"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::ILL, "SIGILL"),
    (Signal::TRAP, "SIGTRAP"),
    (Signal::ABORT, "SIGABRT"),
    (Signal::BUS, "SIGBUS"),
    (Signal::FPE, "SIGFPE"),
    (Signal::KILL, "SIGKILL"),
    (Signal::USR1, "SIGUSR1"),
    (Signal::SEGV, "SIGSEGV"),
    (Signal::USR2, "SIGUSR2"),
    (Signal::PIPE, "SIGPIPE"),
    (Signal::ALARM, "SIGALRM"),
    (Signal::TERM, "SIGTERM"),
    (Signal::XCPU, "SIGXCPU"),
    (Signal::XFSZ, "SIGXFSZ"),
    (Signal::VTALARM, "SIGVTALRM"),
    (Signal::SYS, "SIGSYS"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_status_reads_like_in_a_shell() {
        assert_eq!(Exit::Code(1).to_string(), "exit code 1");
        assert_eq!(Exit::Signal(9).to_string(), "killed by SIGKILL");
        assert_eq!(Exit::Signal(63).to_string(), "killed by signal 63");
        assert_eq!(Exit::Unknown.to_string(), "unknown exit status");
    }
}
