//! The steps of `cargo xtask test`, in the order that finds failures fastest.

use std::{
    env, io,
    path::{self, Path, PathBuf},
    process::{Command, Output},
    thread,
    time::Instant,
};

use crate::tidy;

/// Variable: `off` skips the end-to-end tests; with `required` none of them may skip itself.
const E2E: &str = "PLUGBAY_E2E";

pub(crate) fn test() -> Result<(), String> {
    let wanted = EndToEnd::wanted();
    // The setup mostly waits for the network, so the compiler need not wait for it.
    let setup = (wanted != EndToEnd::Off).then(|| thread::spawn(set_up));
    step("format", || run("cargo", &["fmt", "--all", "--check"]))?;
    step("architecture", tidy::check)?;
    step("dependencies", deny)?;
    let end_to_end = step("real servers and clients", || match setup {
        Some(setup) => installed(wanted, setup.join().map_err(|_| "it panicked")?),
        None => Ok(EndToEnd::Off),
    })?;
    // `all-targets` includes the tests of `cargo test`, and also builds the programs.
    step("lints and build", || wait(linting(&["build", "--workspace", "--all-targets", "--locked"])))?;
    // The suite mostly waits for time limits, so the tests need not wait for it.
    let torture = cfg!(target_os = "linux").then(|| thread::spawn(torture));
    step("tests", || test_workspace(end_to_end))?;
    let Some(torture) = torture else {
        println!("skipped: the torture suite, which needs Linux");
        return Ok(());
    };
    step("torture", || kept(&torture.join().map_err(|_| "it panicked")?.map_err(|error| error.to_string())?))
}

/// How the end-to-end tests are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndToEnd {
    Off,
    /// A test whose programs cannot be installed on this machine prints `skipped`.
    IfInstalled,
    /// Such a test fails.
    Required,
}

impl EndToEnd {
    fn wanted() -> Self {
        match env::var(E2E).as_deref() {
            Ok("off") => Self::Off,
            Ok("required") => Self::Required,
            _ => Self::IfInstalled,
        }
    }
}

fn step<T>(name: &str, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    println!("\n== {name}");
    let start = Instant::now();
    let made = work()?;
    println!("== {name}: ok, {:.0} s", start.elapsed().as_secs_f32());
    Ok(made)
}

/// Checks licences, bans and sources. The advisory database is not included, because it needs a network.
fn deny() -> Result<(), String> {
    const VERSION: &str = "0.20.2";
    let checks = ["deny", "--workspace", "check", "bans", "licenses", "sources"];
    if succeeds("cargo", &["deny", "--version"]) {
        return run("cargo", &checks);
    }
    // The path includes the version, so that a new version is built. Cargo locks the folder and moves the
    // program into it in one step, so two runs at the same time are safe.
    let root = format!("target/tools/cargo-deny-{VERSION}");
    let program = format!("{root}/bin/cargo-deny");
    if !Path::new(&program).exists() {
        println!("cargo-deny is not installed; building {VERSION} into {root}");
        let install = ["install", "cargo-deny", "--version", VERSION, "--locked", "--debug", "--root", &root];
        // Nobody debugs it, and without debug information it is built sooner.
        let mut install_deny = Command::new("cargo");
        install_deny.args(install).env("CARGO_PROFILE_DEV_DEBUG", "0");
        wait(install_deny)?;
    }
    run(&program, &checks)
}

/// Installs MCP servers, clients and hosts that we did not write.
fn set_up() -> io::Result<Output> {
    Command::new("sh").arg("tests-e2e/setup.sh").output()
}

/// How the end-to-end tests can be run with the result of this setup.
fn installed(wanted: EndToEnd, setup: io::Result<Output>) -> Result<EndToEnd, String> {
    let Output { status, stdout, stderr } = setup.map_err(|error| error.to_string())?;
    print!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    match (status.code(), wanted) {
        (Some(0), _) => Ok(EndToEnd::Required),
        (Some(3), EndToEnd::IfInstalled) => {
            println!("skipped: the end-to-end tests that need what is missing");
            Ok(EndToEnd::IfInstalled)
        }
        _ => Err(format!("tests-e2e/setup.sh: {status}")),
    }
}

fn test_workspace(end_to_end: EndToEnd) -> Result<(), String> {
    let mut command = linting(&["test", "--workspace", "--locked"]);
    match end_to_end {
        EndToEnd::Off => command.env(E2E, "off"),
        EndToEnd::IfInstalled => command.env_remove(E2E),
        EndToEnd::Required => command.env(E2E, "required"),
    };
    wait(command)
}

/// Cargo with Clippy as the workspace's compiler. `cargo clippy` would check everything again, including
/// dependencies.
fn linting(args: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(args).env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    // `cargo clippy` passes `-D warnings` in this form.
    cargo.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    cargo
}

/// Runs the short form of the torture suite.
fn torture() -> io::Result<Output> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let programs = path::absolute(target.join("debug"))?;
    Command::new(programs.join("plugbay-torture"))
        .args(["--quick", "--gateway"])
        .arg(programs.join("plugbay"))
        .output()
}

/// Whether every rule was kept.
fn kept(Output { status, stdout, stderr }: &Output) -> Result<(), String> {
    print!("{}{}", String::from_utf8_lossy(stderr), String::from_utf8_lossy(stdout));
    if status.success() { Ok(()) } else { Err(format!("plugbay-torture: {status}")) }
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(args);
    wait(command)
}

fn wait(mut command: Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}
