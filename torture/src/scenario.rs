//! One scenario: a rule, a trial of it, and what came of it.

use std::time::Duration;

use plugbay_testkit::{keep_workspaces, patience};

use crate::trial::Trial;

#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// What must hold, with its limit.
    pub(crate) rule: &'static str,
    pub(crate) run: fn(&Trial) -> Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Kept,
    Broken,
    /// The short form judges no speed, and a limit of speed was passed. All else was kept.
    NotJudged,
    /// This machine cannot stage it.
    NotRun,
}

/// What a trial has shown.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) figure: String,
    pub(crate) faults: Vec<String>,
    pub(crate) not_run: Option<String>,
    /// Limits of speed that were passed in the short form.
    pub(crate) not_judged: Vec<String>,
}

impl Outcome {
    pub(crate) fn broken(why: &str) -> Self {
        Self { faults: vec![why.to_owned()], ..Self::default() }
    }

    pub(crate) fn not_run(why: &str) -> Self {
        Self { not_run: Some(why.to_owned()), ..Self::default() }
    }

    /// Notes a fault, unless the rule holds.
    pub(crate) fn check(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds {
            keep_workspaces(true);
            self.faults.push(fault());
        }
    }

    /// Notes a time over its limit: a fault in the long form, which is for a release build on an idle machine.
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
