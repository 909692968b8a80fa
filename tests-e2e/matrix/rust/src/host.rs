//! A host that goes through every row of the matrix with each server behind the gateway.

mod answers;
mod connection;
mod notifications;
mod rows;
mod visit;

use std::{fs, time::Duration};

use serde::Deserialize;
use serde_json::{Map, json};
use tokio::time::timeout;

use self::connection::{Gateway, Host};
use crate::{Era, Trouble};

const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Deserialize)]
struct Plan {
    era: Era,
    servers: Vec<String>,
    #[serde(flatten)]
    gateway: Gateway,
}

#[expect(clippy::print_stdout, reason = "what was seen is what this program is for")]
pub(crate) async fn run(plan: &str) -> Result<(), Trouble> {
    let plan: Plan = serde_json::from_str(&fs::read_to_string(plan)?)?;
    let host = Host::connect(plan.era, plan.gateway).await?;
    timeout(2 * PATIENCE, all_there(&host, &plan.servers)).await??;
    let mut seen = Map::new();
    for server in plan.servers {
        let rows = rows::go_through(&host, &server).await;
        seen.insert(server, rows.into());
    }
    println!("{}", json!(seen));
    host.leave().await
}

async fn all_there(host: &Host, servers: &[String]) -> Result<(), Trouble> {
    let last = |server: &String| format!("{server}__touch");
    host.notifications
        .until(async || {
            let tools = host.client.list_all_tools().await?;
            Ok(servers.iter().all(|server| tools.iter().any(|tool| tool.name == last(server))))
        })
        .await
}
