//! Notifications of changes: a legacy server sends them to its host, a modern one to its subscriptions.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::{
    Peer, RoleServer,
    model::ServerNotification,
    service::{SubscriptionContext, SubscriptionSendError, SubscriptionSink},
};

use tokio::sync::watch;

use crate::{Era, Trouble};

pub(super) struct Notifications {
    era: Era,
    listeners: Mutex<Vec<SubscriptionSink>>,
    /// How many subscriptions have been accepted and not come yet: the SDK acknowledges one before it hands it over.
    coming: watch::Sender<usize>,
}

impl Notifications {
    pub(super) fn new(era: Era) -> Self {
        Self { era, listeners: Mutex::default(), coming: watch::Sender::default() }
    }

    pub(super) fn accepted(&self) {
        self.coming.send_modify(|coming| *coming += 1);
    }

    /// Keeps a subscription for as long as its host wants it.
    pub(super) async fn deliver_to(&self, subscription: SubscriptionContext) {
        let sink = subscription.sink();
        self.listeners().push(sink.clone());
        self.coming.send_modify(|coming| *coming -= 1);
        subscription.cancelled().await;
        self.listeners().retain(|listener| listener.id() != sink.id());
    }

    pub(super) async fn send(
        &self,
        peer: &Peer<RoleServer>,
        notification: impl Into<ServerNotification>,
    ) -> Result<(), Trouble> {
        let notification = notification.into();
        if matches!(self.era, Era::Legacy) {
            return Ok(peer.send_notification(notification).await?);
        }
        self.coming.subscribe().wait_for(|coming| *coming == 0).await?;
        let listeners = self.listeners().clone();
        for listener in listeners {
            match listener.send(notification.clone()).await {
                Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<SubscriptionSink>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
