//! Filesystem and git locally, memory behind a remote gateway: one list, even while the remote is killed.

use std::time::{Duration, Instant};

use plugbay_testkit::{Host, HttpGateway, Workspace, gateway_path, patience, wait_until};
use serde_json::{Value, json};

use crate::{
    installed::installed,
    world::{Server, World},
};

const CLEAR_ERROR: Duration = Duration::from_secs(2);
const BACK: Duration = Duration::from_secs(5);

pub(crate) fn check_remote() {
    let Some(installed) = installed() else { return };
    let (far, near) = (Workspace::new(), Workspace::new());
    let world = World::new(&near);
    world.reset();
    let (remote, local): (Vec<Server>, Vec<Server>) = world
        .servers(installed)
        .into_iter()
        .filter(|server| ["filesystem", "git", "memory"].contains(&server.name))
        .partition(|server| server.name == "memory");
    far.write_config(&World::config(&remote));
    let aggregator = |address: &str| {
        let gateway = gateway_path(env!("CARGO_BIN_EXE_plugbay"));
        HttpGateway::start_at(&mut far.command(&gateway), address)
    };
    let running = aggregator("127.0.0.1:0");
    let address = running.address().to_owned();
    let remotes = json!({ "team": { "url": format!("http://{address}") } });
    near.write_config(&World::config(&local).top("remotes", remotes));
    let host = near.serve(&gateway_path(env!("CARGO_BIN_EXE_plugbay")));
    host.initialize();
    host.await_tools(&["filesystem__list_directory", "git__git_status", "memory__read_graph"]);

    let works = |servers: &[Server]| servers.iter().all(|server| first_call(&host, server));
    assert!(works(&local) && works(&remote), "{}", host.stderr());
    drop(running); // kill -9
    assert!(works(&local), "local calls go on");
    let begun = Instant::now();
    assert!(!works(&remote));
    assert!(begun.elapsed() < patience(CLEAR_ERROR), "{:?}", begun.elapsed());
    let running = aggregator(&address);
    wait_until("the remote to work again", BACK, || works(&remote).then_some(()));
    host.finish();
    drop(running);
}

/// Whether the server's first call that works on its own has a result.
fn first_call(host: &Host, server: &Server) -> bool {
    let call = &server.calls[0];
    let answer = host.call(&format!("{}__{}", server.name, call.tool), &call.arguments.to_string());
    let answer: Value = serde_json::from_str(answer.text()).expect("JSON");
    answer["result"]["content"].is_array() && answer["result"]["isError"] != true
}
