//! A process that listens on a port: chosen by itself and reported, or given to it.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::Outcome;

const STARTING_LIMIT: Duration = Duration::from_secs(20);
const CLOSING_LIMIT: Duration = Duration::from_secs(3);
const HOST: &str = "127.0.0.1:";

pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Service {
    /// Waits until the process has reported its address on stderr, which goes to the file `words`.
    pub(crate) fn start(command: &mut Command, words: &PathBuf) -> Outcome<Self> {
        Self::wait(command, words, address)
    }

    /// Waits until a connection to `address` is accepted.
    pub(crate) fn start_at(command: &mut Command, words: &PathBuf, address: SocketAddr) -> Outcome<Self> {
        Self::wait(command, words, |_| TcpStream::connect(address).is_ok().then_some(address))
    }

    /// Waits until `ready` accepts what the process has written to stderr so far.
    fn wait(
        command: &mut Command,
        words: &PathBuf,
        ready: impl Fn(&str) -> Option<SocketAddr>,
    ) -> Outcome<Self> {
        let program = command.get_program().to_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(words)?);
        // A separate group, so that a process that hangs can be ended with all that it started.
        let child = command.process_group(0).spawn();
        let child = child.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let mut service = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let began = Instant::now();
        loop {
            let said = String::from_utf8_lossy(&fs::read(words)?).into_owned();
            if let Some(address) = ready(&said) {
                service.address = address;
                return Ok(service);
            }
            if let Some(status) = service.child.try_wait()? {
                return Err(format!("{} ended ({status}): {}", program.display(), said.trim_end()).into());
            }
            if began.elapsed() > STARTING_LIMIT {
                let program = program.display();
                return Err(format!("{program} listens nowhere: {}", said.trim_end()).into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

/// Asks the process to end first, so that a gateway can end its servers.
impl Drop for Service {
    fn drop(&mut self) {
        let _ = kill_process(self.group(), Signal::TERM);
        let began = Instant::now();
        while began.elapsed() < CLOSING_LIMIT && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = kill_process_group(self.group(), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The first address with a port that is followed by something: otherwise the port may be incomplete.
fn address(said: &str) -> Option<SocketAddr> {
    said.match_indices(HOST).find_map(|(start, _)| {
        let rest = &said[start..];
        let end = HOST.len() + rest[HOST.len()..].find(|c: char| !c.is_ascii_digit())?;
        rest[..end].parse().ok().filter(|address: &SocketAddr| address.port() != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_once_it_is_whole() {
        assert_eq!(address("listening on http://127.0.0.1:43"), None);
        let said = "asked for 127.0.0.1:0\nlistening on http://127.0.0.1:4321/mcp\n";
        assert_eq!(address(said), Some(SocketAddr::from(([127, 0, 0, 1], 4321))));
    }
}
