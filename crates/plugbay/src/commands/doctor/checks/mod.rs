//! The checks: pure functions from the facts to findings, one file per family.

mod configuration;
mod entries;
mod files;
mod hosts;
mod left;
mod offers;
mod programs;
mod remote;
mod said;
mod starts;

pub use entries::runs_itself;

use super::{
    examination::{Examination, ServerFacts},
    finding::Finding,
};

/// All findings.
pub fn all(examination: &Examination) -> Vec<Finding> {
    let mut found = configuration::check(examination);
    for facts in &examination.servers {
        found.extend(server(examination, facts));
    }
    found.extend(files::check(examination));
    found.extend(hosts::check(examination));
    found.extend(left::check(examination));
    found.extend(unexplained(examination, &found));
    found.sort_by(|one, other| (&one.about, one.severity).cmp(&(&other.about, other.severity)));
    found
}

/// The reasons why one server does not work. Only the first cause counts, because later ones often follow
/// from it.
fn server(examination: &Examination, facts: &ServerFacts) -> Vec<Finding> {
    let mut found: Vec<Finding> = entries::both_launches(examination, facts).into_iter().collect();
    let cause = entries::itself(examination, facts)
        .or_else(|| programs::check(examination, facts))
        .or_else(|| remote::check(examination, facts))
        .or_else(|| starts::check(examination, facts))
        .or_else(|| offers::check(facts));
    found.extend(cause);
    let Some(secrets) = facts.secrets() else { return found };
    found.into_iter().map(|finding| finding.rephrased(|text| secrets.hide(text).into_owned())).collect()
}

/// Servers that cannot be started for a reason that no other finding explains.
fn unexplained(examination: &Examination, found: &[Finding]) -> Vec<Finding> {
    let told = |facts: &ServerFacts| {
        found.iter().any(|finding| finding.about == super::finding::Subject::Server(facts.name.clone()))
    };
    let unusable = examination.servers.iter().filter(|facts| !told(facts));
    unusable.filter_map(configuration::unusable).collect()
}
