//! The conditions of a measurement: rounds, cores, and the machine's load.

use crate::args::{Cores, Settings};
use crate::{Outcome, cores, process};

const ROUNDS: u32 = 25;
const QUICK_ROUNDS: u32 = 3;

pub(crate) struct Conditions {
    pub(crate) rounds: u32,
    pub(crate) cores: Cores,
    /// The machine's load average before and after.
    pub(crate) loads: [String; 2],
}

impl Conditions {
    /// Runs `measure` with the number of rounds and on the cores in the settings.
    pub(crate) fn during<T>(
        settings: &Settings,
        measure: impl FnOnce(u32) -> Outcome<T>,
    ) -> Outcome<(Self, T)> {
        let rounds = settings.rounds.unwrap_or(if settings.quick { QUICK_ROUNDS } else { ROUNDS });
        let load_before = process::load();
        let _one_core = (settings.cores == Cores::One).then(cores::keep_one).transpose()?;
        let measured = measure(rounds)?;
        let loads = [load_before, process::load()];
        Ok((Self { rounds, cores: settings.cores, loads }, measured))
    }

    /// The conditions on one line, shown above the first figure.
    pub(crate) fn text(&self) -> String {
        let Self { rounds, cores, loads: [before, after] } = self;
        let cores = match cores {
            Cores::One => "all processes on one core",
            Cores::All => "processes where the scheduler puts them",
        };
        format!("{rounds} rounds, {cores}; load average {before}, at the end {after}")
    }
}
