//! Checks of servers that hosts still start themselves.

use super::{
    super::{
        examination::{Examination, ServerFacts},
        finding::{Code, Finding, Severity},
        left::LeftServer,
    },
    configuration, hosts,
};

pub fn check(examination: &Examination) -> Vec<Finding> {
    let left = examination.left.iter();
    // A twin already has its own finding.
    let left = left.filter(|left| left.named || hosts::twin(&left.entry, examination).is_none());
    left.flat_map(|left| of(examination, left)).collect()
}

/// One finding with the reason. For a server named by the user, the reason is a finding too.
fn of(examination: &Examination, left: &LeftServer) -> Vec<Finding> {
    let Some(facts) = &left.facts else { return vec![shared(left)] };
    let cause = cause(examination, left, facts);
    let mut found = vec![still_there(left, cause.as_ref())];
    found.extend(cause.filter(|_| left.named));
    found
}

/// The reason why it does not work. There is no fix, because the entry belongs to the host.
fn cause(examination: &Examination, left: &LeftServer, facts: &ServerFacts) -> Option<Finding> {
    if let Some(name) = left.unset.first() {
        let message = format!("The variable {name} is not set.");
        let remedy = format!("set {name} where plugbay runs");
        return Some(Finding::of(Code::UnsetVariable, &left.name, message, remedy));
    }
    let cause = super::server(examination, facts).into_iter().next();
    cause.or_else(|| configuration::unusable(facts)).map(|finding| finding.fixed_by(None))
}

fn still_there(left: &LeftServer, cause: Option<&Finding>) -> Finding {
    let hosts = left.hosts.join(" and ");
    let (message, remedy) = match cause {
        Some(cause) => (
            format!("{hosts}, not plugbay, starts it. {} ({})", cause.message, cause.code.as_str()),
            format!("{}; then run `plugbay setup`", cause.remedy),
        ),
        None => (
            format!("{hosts}, not plugbay, starts it. It works with plugbay, too."),
            "run `plugbay setup`, which moves it".to_owned(),
        ),
    };
    let evidence = cause.into_iter().flat_map(|cause| cause.evidence.clone()).filter(|_| !left.named);
    Finding::of(Code::LeftInHost, &left.name, message, remedy).seen(evidence)
}

fn shared(left: &LeftServer) -> Finding {
    let (hosts, file) = (left.hosts.join(" and "), left.file.display());
    let message = format!(
        "{hosts}, not plugbay, starts it. Its entry is the project's ({file}), so plugbay did not try it."
    );
    let remedy = "read its entry; `plugbay import` copies it, and `plugbay approve` lets plugbay start it";
    let finding = Finding::of(Code::LeftInHost, &left.name, message, remedy);
    Finding { severity: Severity::Note, ..finding }
}
