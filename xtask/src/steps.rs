//! The steps of `cargo xtask test`, in the order in which they fail fastest.

use std::{
    io,
    path::Path,
    process::{Command, Output},
    thread,
    time::Instant,
};

use crate::tidy;

pub(crate) fn test() -> Result<(), String> {
    // Mostly waits for the network, so it need not be waited for before the compiler has had its turn.
    let peers = thread::spawn(|| Command::new("sh").arg("tests-e2e/setup.sh").output());
    step("format", || run("cargo", &["fmt", "--all", "--check"]))?;
    step("architecture", tidy::check)?;
    step("lints", || {
        run("cargo", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    })?;
    step("dependencies", deny)?;
    step("real servers and clients", || installed(peers.join().map_err(|_| "it panicked")?))?;
    step("tests", || run("cargo", &["test", "--workspace", "--locked"]))
}

fn step(name: &str, work: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    println!("\n== {name}");
    let start = Instant::now();
    work()?;
    println!("== {name}: ok, {:.0} s", start.elapsed().as_secs_f32());
    Ok(())
}

/// Licences, bans and sources. The advisory database is not part of this: it needs a network.
fn deny() -> Result<(), String> {
    const VERSION: &str = "0.20.2";
    let checks = ["deny", "--workspace", "check", "bans", "licenses", "sources"];
    if succeeds("cargo", &["deny", "--version"]) {
        return run("cargo", &checks);
    }
    let root = "target/tools";
    let own = format!("{root}/bin/cargo-deny");
    if !Path::new(&own).exists() {
        println!("cargo-deny is not installed; building {VERSION} into {root}");
        run(
            "cargo",
            &["install", "cargo-deny", "--version", VERSION, "--locked", "--debug", "--root", root],
        )?;
    }
    run(&own, &checks)
}

/// MCP servers and clients that we did not write, for the end-to-end tests.
fn installed(outcome: io::Result<Output>) -> Result<(), String> {
    let Output { status, stdout, stderr } = outcome.map_err(|error| error.to_string())?;
    print!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    match status.code() {
        Some(0) => Ok(()),
        Some(3) => {
            println!("skipped: Node or Python is missing, so the end-to-end tests will skip themselves");
            Ok(())
        }
        _ => Err(format!("tests-e2e/setup.sh: {status}")),
    }
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let status = Command::new(program).args(args).status().map_err(|error| format!("{program}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} {}: {status}", args.join(" "))) }
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}
