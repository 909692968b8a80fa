//! One scenario: a rule, a trial of it, and what came of it.

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
    /// This machine cannot stage it.
    NotRun,
}

/// What a trial has shown.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) figure: String,
    pub(crate) faults: Vec<String>,
    pub(crate) not_run: Option<String>,
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
            self.faults.push(fault());
        }
    }

    #[must_use]
    pub(crate) fn figure(mut self, figure: impl Into<String>) -> Self {
        self.figure = figure.into();
        self
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match (&self.not_run, self.faults.is_empty()) {
            (Some(_), _) => Verdict::NotRun,
            (None, true) => Verdict::Kept,
            (None, false) => Verdict::Broken,
        }
    }
}
