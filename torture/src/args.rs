//! The command line, resolved into settings.

use std::path::PathBuf;

use crate::scenario::Scenario;

pub(crate) const HELP: &str = "\
usage: plugbay-torture [options]

  --quick         the short form: fewer repetitions, and limits for a debug build
  --only A,B      only scenarios whose name contains one of these
  --gateway PATH  the plugbay binary (default: build it with cargo)
  --seed N        the seed of generated messages (default 1)
  --markdown      a table for the documentation
  --json          a JSON object
  --list          show the scenarios and their rules

With TORTURE_TRACE set, each generated message is shown: the longest wait and the work of the loop in ms, and its recipe.
";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
    Markdown,
}

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) quick: bool,
    pub(crate) gateway: Option<PathBuf>,
    pub(crate) seed: u64,
    pub(crate) format: Format,
    only: Vec<String>,
}

pub(crate) enum Wanted {
    Help,
    List,
    Run(Settings),
}

impl Settings {
    pub(crate) fn parse(args: &[String]) -> Result<Wanted, String> {
        let mut settings =
            Self { quick: false, gateway: None, seed: 1, format: Format::Text, only: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--quick" => settings.quick = true,
                "--gateway" => settings.gateway = Some(PathBuf::from(value()?)),
                "--seed" => settings.seed = value()?.parse().map_err(|_| "--seed needs a number")?,
                "--only" => settings.only.extend(value()?.split(',').map(str::to_owned)),
                "--json" => settings.format = Format::Json,
                "--markdown" => settings.format = Format::Markdown,
                "--list" => return Ok(Wanted::List),
                "--help" | "-h" => return Ok(Wanted::Help),
                other => return Err(format!("unknown option {other}\n{HELP}")),
            }
        }
        Ok(Wanted::Run(settings))
    }

    pub(crate) fn wants(&self, scenario: &Scenario) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| scenario.name.contains(part.as_str()))
    }
}
