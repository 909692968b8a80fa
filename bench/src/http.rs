//! Section `http`: the cost of a call if the host, and perhaps the server, uses HTTP.

mod batch;
pub(crate) mod client;
mod message;
mod report;
pub(crate) mod route;
pub(crate) mod service;
pub(crate) mod sockets;

pub(crate) use message::Incoming;

use route::Route;

use crate::args::Settings;
use crate::calls::{
    case::{self, Case},
    report::rows,
};
use crate::conditions::Conditions;
use crate::payload::Kind;
use crate::{Outcome, output};

pub(crate) fn run(settings: &Settings) -> Outcome<()> {
    let routes = Route::all(settings)?;
    // The content of a result makes no difference here, because it is passed on without being parsed.
    let wanted = |case: &Case| case.kind == Kind::Text && settings.wants_case(&case.label());
    let (conditions, all) = Conditions::during(settings, |rounds| {
        let mut all = Vec::new();
        for case in case::all().into_iter().filter(wanted) {
            output::progress(&format!("{} …", case.label()));
            all.extend(rows(&case, &route::run(&case, &routes, rounds)?));
        }
        Ok(all)
    })?;
    output::show(&if settings.is_json() {
        report::json(&conditions, &all).to_string()
    } else {
        report::text(&conditions, &all)
    });
    Ok(())
}
