//! Section `instructions`: the number of instructions of the hot paths, compared with stored counts.
//!
//! Callgrind counts them, so a busy machine makes no difference. Each path runs twice, the second time with
//! more repetitions; the difference is free of everything that happens only once.

mod hot_paths;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::sandbox::Sandbox;
use crate::table::Table;
use crate::{Outcome, output};

pub(crate) use hot_paths::run as run_path;

/// The word with which this program runs one path for Callgrind.
pub(crate) const DRIVER: &str = "hot-path";

const HELP: &str = "\
usage: plugbay-bench instructions [--update] [--stored FILE]

Counts the instructions of the hot paths with Callgrind and fails if one needs over 5 % more than stored.

  --update        store what was counted
  --stored FILE   default bench/instructions.json
";

/// How many percent more than the stored count a path may need.
const TOLERANCE: u64 = 5;

/// Repetitions in both runs, in addition to those that are counted.
const FEW: u64 = 10;

/// The stored counts, and the conditions that they depend on.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    compiler: String,
    architecture: String,
    /// Instructions of one repetition.
    paths: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Options {
    update: bool,
    stored: PathBuf,
}

pub(crate) fn run(args: &[String]) -> Outcome<()> {
    let Some(options) = parse(args)? else {
        output::show(HELP);
        return Ok(());
    };
    if cfg!(debug_assertions) {
        return Err("counts of an unoptimised build say nothing; use cargo run --release".into());
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        output::show("skipped: valgrind is not installed");
        return Ok(());
    }
    let stored = read(&options.stored);
    let stored = if options.update { stored.unwrap_or_default() } else { stored? };
    let here = Stored { compiler: compiler()?, architecture: std::env::consts::ARCH.to_owned(), ..count()? };
    if options.update {
        let text = serde_json::to_string_pretty(&here)?;
        fs::write(&options.stored, format!("{text}\n"))?;
        output::show(&table(&here, &stored));
        return Ok(());
    }
    output::show(&table(&here, &stored));
    if (&here.compiler, &here.architecture) != (&stored.compiler, &stored.architecture) {
        let (stored, here) = (&stored.compiler, &here.compiler);
        output::show(&format!("not compared: the counts are of {stored}, this is {here}"));
        return Ok(());
    }
    judge(&here, &stored)
}

fn parse(args: &[String]) -> Outcome<Option<Options>> {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json");
    let mut options = Options { update: false, stored };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--update" => options.update = true,
            "--stored" => options.stored = PathBuf::from(args.next().ok_or("--stored needs a value")?),
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("unknown argument {arg}; see instructions --help").into()),
        }
    }
    Ok(Some(options))
}

fn read(file: &Path) -> Outcome<Stored> {
    let text = fs::read_to_string(file)
        .map_err(|error| format!("{}: {error}; --update writes it", file.display()))?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?)
}

fn count() -> Outcome<Stored> {
    let mut paths = BTreeMap::new();
    for (path, times) in hot_paths::PATHS {
        output::progress(&format!("{path} …"));
        let (few, many) = (collected(path, FEW)?, collected(path, FEW + times)?);
        paths.insert(path.to_owned(), many.saturating_sub(few) / times);
    }
    Ok(Stored { paths, ..Stored::default() })
}

/// The total instructions of a run.
fn collected(path: &str, times: u64) -> Outcome<u64> {
    let sandbox = Sandbox::new()?;
    let out = sandbox.path("callgrind.out");
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe()?)
        .args([DRIVER, path, &times.to_string()])
        .output()?;
    if !ran.status.success() {
        return Err(format!("{path}: {}", String::from_utf8_lossy(&ran.stderr).trim_end()).into());
    }
    total(&fs::read_to_string(out)?).ok_or_else(|| format!("{path}: Callgrind wrote no total").into())
}

fn total(profile: &str) -> Option<u64> {
    let line = profile
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals:").or_else(|| line.strip_prefix("summary:")))?;
    line.trim().parse().ok()
}

fn compiler() -> Outcome<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output()?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

fn judge(here: &Stored, stored: &Stored) -> Outcome<()> {
    let over: Vec<&str> = here
        .paths
        .iter()
        .filter(|(path, count)| stored.paths.get(*path).is_none_or(|stored| is_over(**count, *stored)))
        .map(|(path, _)| path.as_str())
        .collect();
    if over.is_empty() {
        return Ok(());
    }
    let paths = over.join(", ");
    Err(format!("over {TOLERANCE} % more instructions than stored, or new: {paths}; --update stores them")
        .into())
}

fn is_over(count: u64, stored: u64) -> bool {
    count * 100 > stored * (100 + TOLERANCE)
}

fn table(here: &Stored, stored: &Stored) -> String {
    let mut table = Table::new(1, ["path", "instructions", "stored"]);
    for (path, count) in &here.paths {
        let stored = stored.paths.get(path).map_or_else(|| "–".to_owned(), u64::to_string);
        table.row([path.clone(), count.to_string(), stored]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(paths: &[(&str, u64)]) -> Stored {
        let paths = paths.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect();
        Stored { paths, ..Stored::default() }
    }

    #[test]
    fn a_path_may_need_a_little_more_but_not_much() {
        let stored = counts(&[("call", 1000)]);
        assert!(judge(&counts(&[("call", 1050)]), &stored).is_ok());
        assert!(judge(&counts(&[("call", 700)]), &stored).is_ok());
        assert!(judge(&counts(&[("call", 1051)]), &stored).is_err());
        assert!(judge(&counts(&[("search", 1)]), &stored).is_err());
    }

    #[test]
    fn the_total_of_a_profile_is_read() {
        assert_eq!(total("events: Ir\nfn=main\n1 2\n\ntotals: 4711\n"), Some(4711));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn every_path_runs() {
        for (path, _) in hot_paths::PATHS {
            hot_paths::run(&[path.to_owned(), "2".to_owned()]).unwrap();
        }
    }
}
