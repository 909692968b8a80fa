//! Section `http`: what a call costs when the host, and perhaps the server, is reached over HTTP.

mod batch;
mod client;
mod message;
mod report;
mod route;
mod service;

pub(crate) use message::Incoming;

use route::Route;

use crate::args::{Cores, Settings};
use crate::calls::{
    Conditions,
    case::{self, Case},
    report::rows,
};
use crate::payload::Kind;
use crate::{Outcome, cores, output, process};

pub(crate) fn run(settings: &Settings) -> Outcome<()> {
    if !settings.also.is_empty() {
        return Err("http knows only how plugbay is started, so --also does not apply here".into());
    }
    let routes = Route::all(settings)?;
    let rounds = settings.rounds.unwrap_or(if settings.quick { 3 } else { 25 });
    let load_before = process::load();
    if settings.cores == Cores::One {
        cores::keep_one()?;
    }

    let mut all = Vec::new();
    // What is in a result matters to those who read it; here it only travels.
    let wanted = |case: &Case| {
        case.kind == Kind::Text && settings.case.as_ref().is_none_or(|text| case.label().contains(text))
    };
    for case in case::all().into_iter().filter(wanted) {
        output::progress(&format!("{} …", case.label()));
        all.extend(rows(&case, &route::run(&case, &routes, rounds)?));
    }
    let conditions = Conditions { rounds, cores: settings.cores, loads: [load_before, process::load()] };
    output::show(&if settings.is_json() {
        report::json(&conditions, &all).to_string()
    } else {
        report::text(&conditions, &all)
    });
    Ok(())
}
