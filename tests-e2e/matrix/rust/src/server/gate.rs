//! A gate: some wait until it is open, somebody opens it for good.

use tokio::sync::watch;

#[derive(Default)]
pub(super) struct Gate(watch::Sender<bool>);

impl Gate {
    pub(super) fn open(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn opened(&self) {
        // It cannot fail: the sender is ours.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}
