//! The confinement of jq filters on this machine.

use std::time::Duration;

use plugbay_sandbox::{Confinement, Landlock, Sandbox, Settings};
use serde::Serialize;

use crate::commands::Context;

/// Whether jq filters run here, and which parts of their confinement work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct SandboxState {
    pub works: bool,
    /// The reason why they do not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Limits of memory, processor time, descriptors, processes and file sizes.
    pub limits: bool,
    pub no_new_privileges: bool,
    /// `full`, `partial` or `absent`.
    pub landlock: &'static str,
    /// Whether only system calls that a computation needs are allowed.
    pub seccomp: bool,
}

/// Examines the sandbox by running one filter.
pub(super) async fn examine(context: &Context) -> SandboxState {
    let settings = Settings { spare: Duration::ZERO, ..Settings::new(context.environment.program.clone()) };
    let confinement = Sandbox::new(settings).confinement().await;
    let problem = confinement.as_ref().err().map(ToString::to_string);
    SandboxState::of(confinement.unwrap_or_default(), problem)
}

impl SandboxState {
    fn of(confinement: Confinement, problem: Option<String>) -> Self {
        Self {
            works: problem.is_none(),
            problem,
            limits: confinement.limits,
            no_new_privileges: confinement.no_new_privileges,
            landlock: match confinement.landlock {
                Landlock::Full => "full",
                Landlock::Partial => "partial",
                Landlock::Absent => "absent",
            },
            seccomp: confinement.system_calls,
        }
    }

    /// One line for people.
    pub fn line(&self) -> String {
        if let Some(problem) = &self.problem {
            return format!("jq filters do not run here: {problem}.");
        }
        let landlock = self.landlock != "absent";
        let partly = if self.landlock == "partial" { "Landlock in part" } else { "Landlock" };
        let parts = [(self.limits, "limits"), (landlock, partly), (self.seccomp, "seccomp")];
        let with = |holds: bool| {
            let parts: Vec<&str> =
                parts.iter().filter(|(is, _)| *is == holds).map(|(_, word)| *word).collect();
            (!parts.is_empty()).then(|| parts.join(", "))
        };
        match (with(true), with(false)) {
            (Some(held), None) => format!("jq filters run confined: {held}."),
            (Some(held), Some(missing)) => format!("jq filters run confined: {held}; without {missing}."),
            (None, _) => "jq filters run without confinement.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_holds_and_what_is_missing() {
        let full = Confinement {
            limits: true,
            no_new_privileges: true,
            landlock: Landlock::Full,
            system_calls: true,
        };
        let line = |confinement| SandboxState::of(confinement, None).line();
        assert_eq!(line(full), "jq filters run confined: limits, Landlock, seccomp.");
        let older = Confinement { landlock: Landlock::Partial, system_calls: false, ..full };
        assert_eq!(line(older), "jq filters run confined: limits, Landlock in part; without seccomp.");
        assert_eq!(line(Confinement::default()), "jq filters run without confinement.");
        let broken = SandboxState::of(Confinement::default(), Some("no process".to_owned()));
        assert_eq!(broken.line(), "jq filters do not run here: no process.");
    }
}
