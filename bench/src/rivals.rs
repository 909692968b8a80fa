//! Section `rivals`: gateways that are described by files, each compared with direct calls in the same run.

mod calls;
pub(crate) mod description;
mod faults;
mod link;
mod linked;
mod memory;
mod options;
mod page;
mod results;
mod running;
mod search;
mod start;
mod tokens;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use self::description::{Description, Transport};
use self::options::{Options, Part, Task};
use self::results::Results;
use self::running::Rival;
use crate::{Outcome, gateway, output};

/// The thoroughness of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    Quick,
    Full,
}

impl Effort {
    fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

pub(crate) fn run(args: &[String]) -> Outcome<()> {
    let Some(options) = Options::parse(args)? else {
        output::show(options::HELP);
        return Ok(());
    };
    match options.task {
        Task::Page => page::write(&Results::read(&options.results)?, &options.docs),
        Task::Check => check(&options),
        Task::Measure => measure_all(&options),
    }
}

fn measure_all(options: &Options) -> Outcome<()> {
    let mut results = Results::read(&options.results)?;
    results.begin();
    for about in Description::read_all(&options.descriptions)? {
        if options.wants(&about.name) {
            measure_one(about, options, &mut results)?;
        }
    }
    output::show(&if options.json { results.json() } else { results.summary() });
    Ok(())
}

/// Checks that each gateway works as its description says.
fn check(options: &Options) -> Outcome<()> {
    let mut failed = 0;
    for about in Description::read_all(&options.descriptions)? {
        if !options.wants(&about.name) {
            continue;
        }
        let name = about.name.clone();
        let checked = match find(about, options) {
            Ok(rival) => faults::works(&rival).map(|()| rival.version),
            Err(absent) => Err(absent.1.into()),
        };
        match checked {
            Ok(version) => output::show(&format!("{name} {version}: works")),
            Err(error) => {
                failed += 1;
                output::show(&format!("{name}: {error}"));
            }
        }
    }
    if failed == 0 {
        Ok(())
    } else {
        Err(format!("{failed} gateways do not work, or are not installed").into())
    }
}

/// Measures the parts of one gateway that are missing in the results; each is stored as soon as it is
/// measured.
fn measure_one(about: Description, options: &Options, results: &mut Results) -> Outcome<()> {
    let name = about.name.clone();
    let rival = match find(about, options) {
        Ok(rival) => rival,
        Err(absent) => {
            let (about, reason) = *absent;
            output::progress(&format!("{name}: {reason}"));
            results.absent(&about, &reason);
            return results.write(&options.results);
        }
    };
    results.enter(&rival);
    for part in Part::ALL {
        let is_there = results.has(&name, part.label(), options.effort) && !options.again;
        if is_there || !options.wants_part(part) {
            continue;
        }
        let began = Instant::now();
        let measured = measure(&rival, part, options);
        let measured = measured.unwrap_or_else(|error| json!({ "failed": error.to_string() }));
        let outcome = measured["failed"].as_str().unwrap_or("measured").lines().next().unwrap_or_default();
        let seconds = began.elapsed().as_secs_f64();
        output::progress(&format!("{name}, {}: {outcome} ({seconds:.1} s)", part.label()));
        results.set(&name, part.label(), options.effort, measured);
        results.write(&options.results)?;
    }
    Ok(())
}

fn measure(rival: &Rival, part: Part, options: &Options) -> Outcome<Value> {
    let calls = |transport| {
        if rival.about.has(transport) {
            calls::measure(rival, transport, options.effort)
        } else {
            Ok(json!({ "none": format!("it has no {}", transport.label()) }))
        }
    };
    match part {
        Part::CallsStdio => calls(Transport::Stdio),
        Part::CallsHttp => calls(Transport::Http),
        Part::Start => start::measure(rival, options.effort),
        Part::Memory => memory::measure(rival, options.effort),
        Part::Tokens => tokens::measure(rival),
        Part::Faults => Ok(faults::measure(rival)),
        Part::Search if !options.data.is_dir() => Err("there is no data; --data DIR names it".into()),
        Part::Search => search::measure(rival, &options.data, options.effort),
    }
}

/// The installed program with its version, or the reason why there is none.
fn find(about: Description, options: &Options) -> Result<Rival, Box<(Description, String)>> {
    let found = || -> Outcome<_> {
        if about.is_ours() {
            let program = gateway::find(options.gateway.as_deref())?;
            let version = version_of(&program)?;
            return Ok((program, version));
        }
        let folder = options.installed.join(about.home());
        let program = folder.join("bin").join(&about.program);
        let version = fs::read_to_string(folder.join("version"))
            .map_err(|_| "not installed; bench/rivals/install.sh installs it")?;
        Ok((program.canonicalize()?, version.trim().chars().take(10).collect()))
    };
    match found() {
        Ok((program, version)) => Ok(Rival { about, program, version }),
        Err(error) => Err(Box::new((about, error.to_string()))),
    }
}

fn version_of(program: &Path) -> Outcome<String> {
    let said = Command::new(program).arg("--version").output()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    Ok(said.split_whitespace().nth(1).unwrap_or("unknown").to_owned())
}
