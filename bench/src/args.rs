//! The command line, resolved into settings.

use std::path::PathBuf;

use crate::Outcome;
use crate::search::Half;

pub(crate) const HELP: &str = "\
usage: plugbay-bench [calls | code | daemon | execute | http | start | memory | scale | search] [options]

  calls    latency, CPU and throughput per call (the default)
  code     a script in run_code beside the same calls one by one
  daemon   calls and starts through the daemon beside the same without it
  execute  a call through execute_tool beside the same call in all mode
  http     calls with a host over HTTP, and servers over stdio and HTTP
  start    time from spawn until the tools are listed
  memory   memory of the gateway's own processes
  scale    start, search, memory and one server's change with 200 to 50,000 tools
  search   how often, how fast and for how many tokens the right tool is found

Sections with options of their own (`rivals --help`, `instructions --help`):

  rivals        gateways that are described by a file, side by side
  instructions  instructions of the hot paths, compared with the stored counts

  --gateway PATH       the plugbay binary (default: build it with cargo)
  --rounds N           rounds of calls (default 25), or spawns of start (default 11)
  --quick              few rounds, for a first look
  --only A,B           only these of direct, pump and plugbay; in http of direct, to-stdio and to-http;
                       in execute of direct, pump, all and execute_tool
  --case TEXT          only cases of calls, execute or http whose name contains TEXT, such as 100 KB text
  --all-cores          calls: leave the processes to the scheduler (default: all on one core)
  --mode MODE          mode in plugbay's config (default all; none leaves it out)
  --id-last            answers carry their id after the payload, as many servers write them
  --data DIR           search: the folder with catalogs and queries
  --half fit|held      search: only the figures of this half of each set; thresholds are fitted on the half fit
  --misses             search: with --half fit, the queries whose tools are not among the first five
  --markdown           search, scale: the page for the documentation instead of tables
  --json               a JSON object instead of tables
";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Calls,
    Code,
    Daemon,
    Execute,
    Http,
    Start,
    Memory,
    Scale,
    Search,
}

/// The processor cores for the measured processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    One,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
    /// A page for the documentation.
    Markdown,
}

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) section: Section,
    pub(crate) gateway: Option<PathBuf>,
    pub(crate) rounds: Option<u32>,
    pub(crate) quick: bool,
    pub(crate) format: Format,
    pub(crate) id_last: bool,
    pub(crate) cores: Cores,
    pub(crate) mode: Option<String>,
    only: Option<Vec<String>>,
    /// Only cases whose label contains this, or catalogs with such a name.
    pub(crate) case: Option<String>,
    /// The folder with the catalogs and queries.
    pub(crate) data: Option<PathBuf>,
    /// Show the misses of the half `fit`.
    pub(crate) misses: bool,
    /// Only this half of each set.
    pub(crate) half: Option<Half>,
}

impl Settings {
    /// Parses the arguments; `None` if the user asked for help.
    pub(crate) fn parse(args: &[String]) -> Outcome<Option<Self>> {
        let mut settings = Self {
            section: Section::Calls,
            gateway: None,
            rounds: None,
            quick: false,
            format: Format::Text,
            id_last: false,
            cores: Cores::One,
            mode: Some("all".to_owned()),
            only: None,
            case: None,
            data: None,
            half: None,
            misses: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "calls" => settings.section = Section::Calls,
                "code" => settings.section = Section::Code,
                "daemon" => settings.section = Section::Daemon,
                "execute" => settings.section = Section::Execute,
                "http" => settings.section = Section::Http,
                "start" => settings.section = Section::Start,
                "memory" => settings.section = Section::Memory,
                "scale" => settings.section = Section::Scale,
                "search" => settings.section = Section::Search,
                "--data" => settings.data = Some(PathBuf::from(value()?)),
                "--misses" => settings.misses = true,
                "--half" => settings.half = Some(half(value()?)?),
                "--gateway" => settings.gateway = Some(PathBuf::from(value()?)),
                "--rounds" => settings.rounds = Some(positive(value()?)?),
                "--only" => settings.only = Some(value()?.split(',').map(str::to_owned).collect()),
                "--case" => settings.case = Some(value()?.clone()),
                "--mode" => settings.mode = Some(value()?.clone()).filter(|mode| mode != "none"),
                "--quick" => settings.quick = true,
                "--json" => settings.format = Format::Json,
                "--markdown" => settings.format = Format::Markdown,
                "--all-cores" => settings.cores = Cores::All,
                "--id-last" => settings.id_last = true,
                "--help" | "-h" => return Ok(None),
                _ => return Err(format!("unknown argument {arg}; see --help").into()),
            }
        }
        settings.check_only()?;
        Ok(Some(settings))
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|one| one == name))
    }

    pub(crate) fn wants_case(&self, label: &str) -> bool {
        self.case.as_ref().is_none_or(|text| label.contains(text))
    }

    /// Rejects unknown names: a misspelt one would measure nothing and look like success.
    fn check_only(&self) -> Outcome<()> {
        for name in self.only.iter().flatten() {
            let known = match self.section {
                Section::Http => matches!(name.as_str(), "direct" | "to-stdio" | "to-http"),
                Section::Daemon | Section::Code => false,
                Section::Execute => matches!(name.as_str(), "direct" | "pump" | "all" | "execute_tool"),
                _ => matches!(name.as_str(), "direct" | "pump" | "plugbay"),
            };
            if !known {
                return Err(format!("--only names {name}, which this section does not have").into());
            }
        }
        Ok(())
    }
}

fn half(text: &str) -> Outcome<Half> {
    match text {
        "fit" => Ok(Half::Fit),
        "held" => Ok(Half::Held),
        _ => Err(format!("--half is fit or held, not {text}").into()),
    }
}

fn positive(text: &str) -> Outcome<u32> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("{text} is not a positive number").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Outcome<Option<Settings>> {
        let args: Vec<String> = line.split(' ').filter(|arg| !arg.is_empty()).map(str::to_owned).collect();
        Settings::parse(&args)
    }

    #[test]
    fn defaults_measure_calls_of_everything() {
        let settings = parse("").unwrap().unwrap();
        assert_eq!(settings.section, Section::Calls);
        assert!(settings.wants("direct") && settings.wants("plugbay"));
        assert_eq!(settings.mode.as_deref(), Some("all"));
    }

    #[test]
    fn options_are_read_in_any_order() {
        let settings = parse("--quick start --rounds 5 --only direct,pump --mode none").unwrap().unwrap();
        assert_eq!((settings.section, settings.rounds, settings.quick), (Section::Start, Some(5), true));
        assert!(settings.wants("pump") && !settings.wants("plugbay"));
        assert_eq!(settings.mode, None);
    }

    #[test]
    fn mistakes_are_refused() {
        for line in [
            "--rounds",
            "--rounds 0",
            "--rounds x",
            "--only dirct",
            "--also x",
            "fast",
            "http --only pump",
            "execute --only plugbay",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert!(parse("--help").unwrap().is_none());
    }
}
