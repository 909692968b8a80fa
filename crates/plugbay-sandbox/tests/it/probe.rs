//! Attempts of a confined process: this program applies a child's confinement to itself and makes them.

use std::{
    fs::File,
    io::{Read, Write},
    net::{TcpStream, UdpSocket},
    os::fd::AsFd,
    os::unix::net::UnixStream,
    process::{Command, ExitCode},
    thread,
};

use libtest_mimic::Trial;
use plugbay_sandbox::child::confinement::{self, Calls};

pub(crate) const COMMAND: &str = "__probe";

/// Confines itself, makes the attempts, and prints each as `name: result` on a line: stdout stays open.
pub(crate) fn main() -> ExitCode {
    // A descriptor that somebody forgot to close.
    let forgotten = File::open("/etc/passwd").unwrap();
    let begun = confinement::begin();
    let confinement = begun.finish(&Calls::new(), 1 << 30, 60);
    let mut buffer = [0; 8];
    let attempts: [(&str, bool); 10] = [
        ("read a file", File::open("/etc/passwd").is_ok()),
        ("write a file", File::create("/tmp/plugbay-sandbox-probe").is_ok()),
        ("list a folder", std::fs::read_dir("/").is_ok()),
        ("read a forgotten descriptor", (&forgotten).read(&mut buffer).is_ok()),
        ("connect", TcpStream::connect("127.0.0.1:9").is_err_and(|error| is_refused(&error))),
        ("bind", UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("make a pair of sockets", UnixStream::pair().is_ok()),
        ("start a program", Command::new("/bin/true").status().is_ok()),
        ("start a thread", thread::Builder::new().spawn(|| ()).is_ok()),
        ("duplicate a descriptor", forgotten.as_fd().try_clone_to_owned().is_ok()),
    ];
    let mut stdout = std::io::stdout();
    for (name, done) in attempts {
        _ = writeln!(stdout, "{name}: {}", if done { "done" } else { "denied" });
    }
    _ = writeln!(stdout, "seccomp: {}", confinement.system_calls);
    _ = writeln!(stdout, "landlock: {:?}", confinement.landlock);
    _ = writeln!(stdout, "limits: {}", confinement.limits);
    ExitCode::SUCCESS
}

/// Whether the connection was attempted: nobody listens there.
fn is_refused(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::ConnectionRefused
}

pub(crate) fn trials() -> Vec<Trial> {
    let denied = Trial::test("probe::a_confined_process_reaches_nothing", || {
        let output = Command::new(std::env::current_exe()?).arg(COMMAND).output()?;
        let text = String::from_utf8(output.stdout)?;
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("limits: true"), "{text}");
        if text.contains("seccomp: true") {
            assert!(!text.contains(": done"), "{text}");
            assert_eq!(text.matches(": denied").count(), 10, "{text}");
        } else {
            // The limit of descriptors denies these two on every system.
            assert!(text.contains("read a file: denied") && text.contains("bind: denied"), "{text}");
        }
        Ok(())
    });
    vec![denied.with_ignored_flag(!cfg!(unix))]
}
