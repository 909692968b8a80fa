//! Section `calls`: the cost of one call on each route, measured in rounds that alternate between the routes.

mod bars;
pub(crate) mod case;
mod measure;
pub(crate) mod pipes;
pub(crate) mod report;

use crate::args::Settings;
use crate::conditions::Conditions;
use crate::target::Target;
use crate::{Outcome, output};

pub(crate) fn run(settings: &Settings) -> Outcome<()> {
    let targets = Target::all(settings)?;
    let (conditions, rows) = Conditions::during(settings, |rounds| {
        let mut rows = Vec::new();
        for case in case::all().into_iter().filter(|case| settings.wants_case(&case.label())) {
            output::progress(&format!("{} …", case.label()));
            let series = measure::run(&case, &targets, rounds, settings.id_last)?;
            rows.extend(report::rows(&case, &series));
        }
        Ok(rows)
    })?;
    let bars = bars::judge(&rows);
    output::show(&if settings.is_json() {
        report::json(&conditions, &rows, &bars).to_string()
    } else {
        report::text(&conditions, &rows, &bars)
    });
    Ok(())
}
