//! Checks that the code has the structure that ARCHITECTURE.md describes.

mod tree;

mod cycles;
mod dependencies;
mod fields;
mod headline;
mod jsonrpc;
mod length;
mod links;
mod map;
mod purity;

use std::path::Path;

use tree::Tree;

/// One rule: its statement, and the check that lists the violations.
struct Rule {
    holds: &'static str,
    check: fn(&Tree) -> Vec<String>,
}

/// All rules, each with its own file.
const RULES: [Rule; 9] = [
    Rule { holds: "every Rust file begins with a `//!` headline", check: headline::check },
    Rule { holds: "no Rust file has more than 500 lines", check: length::check },
    Rule { holds: "no struct has more than 16 fields", check: fields::check },
    Rule { holds: "no import cycle has more than 4 modules", check: cycles::check },
    Rule { holds: "core does no I/O and reads no clock", check: purity::check },
    Rule { holds: "only core's wire writes JSON-RPC messages", check: jsonrpc::check },
    Rule { holds: "the map in ARCHITECTURE.md names the modules that exist", check: map::check },
    Rule { holds: "links in the documentation lead somewhere", check: links::check },
    Rule { holds: "crates depend only downwards", check: dependencies::check },
];

/// Checks all rules and reports every violation.
pub(crate) fn check() -> Result<(), String> {
    let tree = Tree::read(Path::new("."))?;
    let broken = RULES.iter().filter_map(|rule| {
        let problems = (rule.check)(&tree);
        let report = || format!("\n{} ({}):\n  {}\n", rule.holds, problems.len(), problems.join("\n  "));
        (!problems.is_empty()).then(report)
    });
    let report: String = broken.collect();
    if report.is_empty() { Ok(()) } else { Err(format!("not tidy; these rules are broken:\n{report}")) }
}
