//! Section `calls`: what one call costs on each route, measured in rounds that alternate between the routes.

mod bars;
pub(crate) mod case;
mod measure;
pub(crate) mod report;

use case::Case;

use crate::args::{Cores, Settings};
use crate::target::Target;
use crate::{Outcome, cores, output, process};

/// Under which circumstances the rows came about.
pub(crate) struct Conditions {
    pub(crate) rounds: u32,
    pub(crate) cores: Cores,
    /// The machine's load average before and after.
    pub(crate) loads: [String; 2],
}

pub(crate) fn run(settings: &Settings) -> Outcome<()> {
    let targets = Target::all(settings)?;
    let rounds = settings.rounds.unwrap_or(if settings.quick { 3 } else { 25 });
    let load_before = process::load();
    if settings.cores == Cores::One {
        cores::keep_one()?;
    }

    let mut rows = Vec::new();
    let wanted = |case: &Case| settings.case.as_ref().is_none_or(|text| case.label().contains(text));
    for case in case::all().into_iter().filter(wanted) {
        output::progress(&format!("{} …", case.label()));
        let series = measure::run(&case, &targets, rounds, settings.id_last)?;
        rows.extend(report::rows(&case, &series));
    }

    let bars = bars::judge(&rows);
    let conditions = Conditions { rounds, cores: settings.cores, loads: [load_before, process::load()] };
    output::show(&if settings.is_json() {
        report::json(&conditions, &rows, &bars).to_string()
    } else {
        report::text(&conditions, &rows, &bars)
    });
    Ok(())
}
