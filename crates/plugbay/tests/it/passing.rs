//! What nobody here knows passes all the same: extensions and experiments.

use plugbay_testkit::{Host, RawMessage, Script, Workspace};

use crate::{
    fidelity::{PAIRS, Pair},
    gateway,
};

const OF_SERVER: &str =
    r#""extensions":{"com.example/z":{"a":1},"io.modelcontextprotocol/ui":{}},"experimental":{"y":{}}"#;
const OF_HOST: &str = r#""extensions":{"io.modelcontextprotocol/ui":{ "n":1.0,"mimeTypes":["text/html;profile=mcp-app"]}},"experimental":{"x":{}}"#;

#[track_caller]
fn open(host: &Host, era: &str) -> RawMessage {
    host.declare(&format!("{{{OF_HOST}}}"));
    if era == "modern" { host.discover() } else { host.initialize() }
}

#[test]
fn extensions_are_told_in_both_directions() {
    for pair in PAIRS {
        let (host_era, server_era): Pair = pair;
        let workspace = Workspace::new();
        let script = Script::friendly()
            .set("era", format!("{server_era:?}"))
            .set("capabilities", format!("{{{OF_SERVER}}}"));
        let host = workspace.serve_with(&gateway(), &[("s", script)]);
        open(&host, host_era);
        host.await_tools(&["s__echo"]);
        host.call("s__echo", "{}");
        host.finish();
        let told = if server_era == "modern" { r#""tools/call""# } else { r#""initialize""# };
        let log = workspace.log("s");
        let told = log.iter().rfind(|line| line.contains(told)).expect("it was called");
        assert!(told.contains(OF_HOST), "{pair:?}: {told}");

        // A server that has been met before is known when the next host comes.
        let host = workspace.serve(&gateway());
        let opened = open(&host, host_era);
        assert!(opened.result().contains(OF_SERVER), "{pair:?}: {opened:?}");
        host.finish();
    }
}

#[test]
fn a_server_hears_of_a_host_that_knows_more_than_the_ones_before() {
    let workspace = Workspace::new();
    let host = workspace.serve_with(&gateway(), &[("s", Script::friendly())]);
    host.discover();
    host.await_tools(&["s__echo"]);
    assert_eq!(workspace.count_log("s", OF_HOST), 0);
    host.declare(&format!("{{{OF_HOST}}}"));
    host.list_tools();
    workspace.await_log("s", OF_HOST, 1);
    host.await_tools(&["s__echo"]);
    host.finish();
}
