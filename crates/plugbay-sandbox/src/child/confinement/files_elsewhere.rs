//! Systems without Landlock: files and sockets are not denied.

use crate::protocol::Landlock;

pub(super) fn no_new_privileges() -> bool {
    false
}

pub(super) fn deny() -> Landlock {
    Landlock::Absent
}
