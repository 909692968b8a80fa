//! The cost of a call, a start and a server through plugbay, compared with a direct call and a blind pump;
//! and the quality of its search for tools.

mod answer;
mod args;
mod batch;
mod calls;
mod code;
mod conditions;
mod cores;
mod daemon;
mod execute;
mod gateway;
mod host;
mod http;
mod instructions;
mod lines;
mod memory;
mod output;
mod payload;
mod process;
mod pump;
mod rivals;
mod rounds;
mod sandbox;
mod scale;
mod search;
mod start;
mod stats;
mod stub;
mod table;
mod target;
mod watchdog;

use std::process::ExitCode;

use args::{Section, Settings};

/// Nothing here depends on the kind of an error: each one ends the run with its message.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Outcome<()> {
    // The roles for separate processes, and the sections with their own options.
    match args.split_first() {
        Some((part, rest)) if part == "stub" => return stub::run(&stub::Options::parse(rest)?),
        Some((part, rest)) if part == "pump" => return pump::run(rest),
        Some((part, rest)) if part == instructions::DRIVER => return instructions::run_path(rest),
        Some((section, rest)) if section == "instructions" => return instructions::run(rest),
        Some((section, rest)) if section == "rivals" => return rivals::run(rest),
        _ => {}
    }

    let Some(settings) = Settings::parse(args)? else {
        output::show(args::HELP);
        return Ok(());
    };
    match settings.section {
        Section::Calls => calls::run(&settings),
        Section::Code => code::run(&settings),
        Section::Daemon => daemon::run(&settings),
        Section::Execute => execute::run(&settings),
        Section::Http => http::run(&settings),
        Section::Start => start::run(&settings),
        Section::Memory => memory::run(&settings),
        Section::Scale => scale::run(&settings),
        Section::Search => search::run(&settings),
    }
}
