//! The command line.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::{commands, panel, settings};

/// One plug panel for all your MCP servers.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
struct Args {
    /// Use this configuration file alone.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say more on stderr; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Stand between a host and all configured servers, on stdin and stdout.
    Serve,
}

/// Runs the program: the whole of `main`.
pub fn run() -> ExitCode {
    // The guard is kept tiny: no arguments to parse, no runtime, no log.
    let mut hidden = std::env::args_os().skip(1);
    if hidden.next().is_some_and(|command| command == panel::GUARD_COMMAND) {
        return plugbay_upstream::process::guard_main(&hidden.next().unwrap_or_default().to_string_lossy());
    }
    let args = Args::parse();
    log(args.verbose);
    let source = settings::Source::new(args.config);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.and_then(|runtime| {
        let outside = settings::outside()?;
        match args.command {
            Command::Serve => runtime.block_on(commands::serve::serve(&source, outside)),
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The log goes to stderr: stdout is the protocol.
fn log(verbosity: u8) {
    let level = match verbosity {
        0 => tracing::level_filters::LevelFilter::WARN,
        1 => tracing::level_filters::LevelFilter::INFO,
        _ => tracing::level_filters::LevelFilter::DEBUG,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .init();
}
