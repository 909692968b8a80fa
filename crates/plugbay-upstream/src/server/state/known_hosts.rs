//! The hosts that have had a call at one process of a server: a late message of it may belong to any of these
//! calls.

use std::sync::{Arc, Weak};

use plugbay_core::exchange::Caller;

/// The hosts that have had a call since the process started.
#[derive(Debug, Default)]
pub(in crate::server) enum KnownHosts {
    #[default]
    None,
    One {
        /// Keeps the address from being reused.
        caller: Weak<dyn Caller>,
        owner: Option<[u8; 32]>,
    },
    Several,
}

impl KnownHosts {
    pub(in crate::server) fn called(&mut self, caller: &Arc<dyn Caller>) {
        match self {
            Self::None => *self = Self::One { caller: Arc::downgrade(caller), owner: caller.owner() },
            Self::One { .. } if !self.allow(&**caller) => *self = Self::Several,
            Self::One { .. } | Self::Several => {}
        }
    }

    pub(in crate::server) fn are_several(&self) -> bool {
        matches!(self, Self::Several)
    }

    /// Whether a message that names no call may be shown to this host.
    pub(in crate::server) fn allow(&self, host: &dyn Caller) -> bool {
        match self {
            Self::None => true,
            Self::One { caller, owner } => {
                std::ptr::addr_eq(caller.as_ptr(), host) || (owner.is_some() && *owner == host.owner())
            }
            Self::Several => false,
        }
    }
}
