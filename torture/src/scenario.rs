//! One scenario: a rule, a trial of it, and its outcome.

use std::time::Duration;

use plugbay_testkit::{keep_workspaces, patience};

use crate::trial::Trial;

#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// The rule that must hold, with its limit.
    pub(crate) rule: &'static str,
    pub(crate) run: fn(&Trial) -> Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Kept,
    Broken,
    /// A speed limit was exceeded in the short form, which does not judge speed. Everything else was kept.
    NotJudged,
    /// The scenario is not possible on this machine.
    NotRun,
}

/// The results of a trial.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) figure: String,
    pub(crate) faults: Vec<String>,
    pub(crate) not_run: Option<String>,
    /// Speed limits that were exceeded in the short form.
    pub(crate) not_judged: Vec<String>,
}

impl Outcome {
    pub(crate) fn broken(why: &str) -> Self {
        Self { faults: vec![why.to_owned()], ..Self::default() }
    }

    pub(crate) fn not_run(why: &str) -> Self {
        Self { not_run: Some(why.to_owned()), ..Self::default() }
    }

    /// Adds a fault, unless the rule holds.
    pub(crate) fn check(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds {
            keep_workspaces(true);
            self.faults.push(fault());
        }
    }

    /// Notes a time over its limit. It is a fault only in the long form, which is for a release build on an
    /// idle machine.
    pub(crate) fn check_time(
        &mut self,
        trial: &Trial,
        time: Duration,
        limit: Duration,
        fault: impl FnOnce() -> String,
    ) {
        if trial.quick {
            self.not_judged.extend((time > limit).then(fault));
        } else {
            self.check(time <= patience(limit), fault);
        }
    }

    #[must_use]
    pub(crate) fn figure(mut self, figure: impl Into<String>) -> Self {
        self.figure = figure.into();
        self
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Self { faults, .. } if !faults.is_empty() => Verdict::Broken,
            Self { not_run: Some(_), .. } => Verdict::NotRun,
            Self { not_judged, .. } if !not_judged.is_empty() => Verdict::NotJudged,
            _ => Verdict::Kept,
        }
    }
}
