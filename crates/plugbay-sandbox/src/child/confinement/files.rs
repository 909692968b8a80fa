//! Landlock: no file, no TCP connection, no signal to other processes.

use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreated, RulesetError, RulesetStatus,
    Scope,
};

use crate::protocol::Landlock;

/// All that this version of Landlock can deny is denied; older kernels deny what they know.
const KNOWN: ABI = ABI::V6;

pub(super) fn no_new_privileges() -> bool {
    rustix::thread::set_no_new_privs(true).is_ok()
}

pub(super) fn deny() -> Landlock {
    match everything().and_then(RulesetCreated::restrict_self) {
        Ok(status) => match status.ruleset {
            RulesetStatus::FullyEnforced => Landlock::Full,
            RulesetStatus::PartiallyEnforced => Landlock::Partial,
            RulesetStatus::NotEnforced => Landlock::Absent,
        },
        Err(_) => Landlock::Absent,
    }
}

/// A rule set without a rule: whatever it handles is denied.
fn everything() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()
}
