//! The options of the section `rivals`.

use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::rivals::Effort;
use crate::search;

pub(crate) const HELP: &str = "\
usage: plugbay-bench rivals [page] [options]

Measures every gateway that is described in bench/rivals and installed. Results are stored part by part,
and what is stored already is not measured again. `page` writes the documentation from them.

  --only A,B           only these gateways
  --parts A,B          only these of stdio, http, start, memory, tokens, faults, search
  --check              only start each gateway and call a tool of two servers; stores nothing
  --quick              few rounds, for a first look; a later full run measures again
  --again              measure what is stored as well
  --installed DIR      where install.sh put the gateways (default: where it puts them)
  --gateway PATH       the plugbay binary (default: build it with cargo)
  --results FILE       default bench/rivals/results/results.json
  --descriptions DIR   default bench/rivals
  --data DIR           the folder with catalogs and queries, for search
  --docs DIR           page: where rivals.md and pictures/ are (default docs)
  --json               print the results instead of a summary
";

/// The parts of a measurement. The faults come last, because they may keep a machine busy for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    CallsStdio,
    CallsHttp,
    Start,
    Memory,
    Tokens,
    Search,
    Faults,
}

impl Part {
    pub(crate) const ALL: [Self; 7] = [
        Self::CallsStdio,
        Self::CallsHttp,
        Self::Start,
        Self::Memory,
        Self::Tokens,
        Self::Search,
        Self::Faults,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::CallsStdio => "stdio",
            Self::CallsHttp => "http",
            Self::Start => "start",
            Self::Memory => "memory",
            Self::Tokens => "tokens",
            Self::Search => "search",
            Self::Faults => "faults",
        }
    }
}

/// The task that the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Measure,
    Check,
    Page,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) task: Task,
    pub(crate) effort: Effort,
    pub(crate) again: bool,
    pub(crate) json: bool,
    pub(crate) gateway: Option<PathBuf>,
    pub(crate) installed: PathBuf,
    pub(crate) results: PathBuf,
    pub(crate) descriptions: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) docs: PathBuf,
    only: Option<Vec<String>>,
    parts: Option<Vec<String>>,
}

impl Options {
    /// Parses the options; `None` if the user asked for help.
    pub(crate) fn parse(args: &[String]) -> Outcome<Option<Self>> {
        // The workspace is where this was built; a binary that was moved needs the options.
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = bench.parent().unwrap_or(bench);
        let mut options = Self {
            task: Task::Measure,
            effort: Effort::Full,
            again: false,
            json: false,
            gateway: None,
            installed: installed()?,
            results: bench.join("rivals/results/results.json"),
            descriptions: bench.join("rivals"),
            data: search::default_folder(),
            docs: root.join("docs"),
            only: None,
            parts: None,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            let names = |text: &String| text.split(',').map(str::to_owned).collect::<Vec<_>>();
            match arg.as_str() {
                "page" => options.task = Task::Page,
                "--check" => options.task = Task::Check,
                "--quick" => options.effort = Effort::Quick,
                "--again" => options.again = true,
                "--json" => options.json = true,
                "--only" => options.only = Some(names(value()?)),
                "--parts" => options.parts = Some(known_parts(names(value()?))?),
                "--gateway" => options.gateway = Some(PathBuf::from(value()?)),
                "--installed" => options.installed = PathBuf::from(value()?),
                "--results" => options.results = PathBuf::from(value()?),
                "--descriptions" => options.descriptions = PathBuf::from(value()?),
                "--data" => options.data = PathBuf::from(value()?),
                "--docs" => options.docs = PathBuf::from(value()?),
                "--help" | "-h" => return Ok(None),
                _ => return Err(format!("unknown argument {arg}; see rivals --help").into()),
            }
        }
        options.installed = std::path::absolute(&options.installed)?;
        options.data = std::path::absolute(&options.data)?;
        Ok(Some(options))
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|one| one == name))
    }

    pub(crate) fn wants_part(&self, part: Part) -> bool {
        self.parts.as_ref().is_none_or(|parts| parts.iter().any(|one| one == part.label()))
    }
}

/// The folder in which `install.sh` puts the gateways by default.
fn installed() -> Outcome<PathBuf> {
    let folder = |key: &str| std::env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    Ok(cache.ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("plugbay-rivals"))
}

/// Rejects unknown parts: a misspelt part would otherwise measure nothing and look like success.
fn known_parts(names: Vec<String>) -> Outcome<Vec<String>> {
    match names.iter().find(|name| Part::ALL.iter().all(|part| part.label() != *name)) {
        Some(unknown) => Err(format!("there is no part {unknown}; see rivals --help").into()),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Outcome<Option<Options>> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn gateways_and_parts_can_be_picked() {
        let options = parse("--only a,b --parts start --quick").unwrap().unwrap();
        assert!(options.wants("a") && !options.wants("c"));
        assert!(options.wants_part(Part::Start) && !options.wants_part(Part::Faults));
        assert_eq!(options.effort, Effort::Quick);
    }

    #[test]
    fn mistakes_are_refused() {
        for line in ["--parts speed", "--only", "fast"] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert!(parse("--help").unwrap().is_none());
    }
}
