//! A request by plugbay that is cancelled when the future that waits for it is dropped.

use super::Session;
use crate::respond;

/// Cancels a request on drop, unless it was answered.
pub(crate) struct CancelOnDrop<'a> {
    pub(crate) session: &'a Session,
    pub(crate) id: &'a [u8],
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.session.cancel(self.id, respond::not_needed());
    }
}
