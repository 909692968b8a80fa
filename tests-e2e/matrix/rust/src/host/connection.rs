//! The way to the gateway: over stdio or HTTP, in either era.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use rmcp::{
    ClientServiceExt, RoleClient,
    model::{ProtocolVersion, SubscriptionFilter},
    service::{ClientLifecycleMode, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde::Deserialize;
use tokio::{process::Command, task::JoinHandle};

use super::{answers::Answers, notifications::Notifications};
use crate::{Era, Trouble};

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Gateway {
    Program { command: String, args: Vec<String>, env: HashMap<String, String>, cwd: PathBuf },
    Address { url: String },
}

pub(super) struct Host {
    pub(super) era: Era,
    pub(super) client: RunningService<RoleClient, Answers>,
    pub(super) notifications: Arc<Notifications>,
}

impl Host {
    /// Where lists are announced only to those who ask for it, it asks.
    pub(super) async fn connect(era: Era, gateway: Gateway) -> Result<Self, Trouble> {
        let notifications = Arc::new(Notifications::default());
        let answers = Answers { era, notifications: notifications.clone() };
        let lifecycle = match era {
            Era::Legacy => ClientLifecycleMode::Initialize,
            Era::Modern => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
        };
        let client = match gateway {
            Gateway::Program { command, args, env, cwd } => {
                let mut program = Command::new(command);
                program.args(args).env_clear().envs(env).current_dir(cwd);
                answers.serve_with_lifecycle(TokioChildProcess::new(program)?, lifecycle).await?
            }
            Gateway::Address { url } => {
                // The HTTP client wants one, whatever the address is.
                let _ = rustls::crypto::ring::default_provider().install_default();
                answers.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url), lifecycle).await?
            }
        };
        let host = Self { era, client, notifications };
        if matches!(era, Era::Modern) {
            let lists = SubscriptionFilter::builder().tools_list_changed().resources_list_changed();
            host.listen(lists.prompts_list_changed().build()).await?;
        }
        Ok(host)
    }

    /// Receives what a modern gateway sends for a subscription, until the task is aborted.
    pub(super) async fn listen(&self, wanted: SubscriptionFilter) -> Result<JoinHandle<()>, Trouble> {
        let mut subscription = self.client.listen(wanted).await?;
        let notifications = self.notifications.clone();
        Ok(tokio::spawn(async move {
            while let Ok(Some(notification)) = subscription.next().await {
                notifications.receive(notification);
            }
        }))
    }

    pub(super) async fn leave(self) -> Result<(), Trouble> {
        self.client.cancel().await?;
        Ok(())
    }
}
