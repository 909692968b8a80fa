//! A server that never answered which era it speaks, replaced by one that speaks both. For a while plugbay
//! treats it as before, and it must not notice that its host is of the newer era.

use std::fs;

use plugbay_testkit::{Config, Workspace, gateway_path};
use serde_json::json;

use crate::{
    gateway::Gateway,
    installed::{Installed, installed, scripts},
};

/// A legacy server that ignores everything else.
const BEFORE: &str = r#"
import json, sys
KNOWN = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
    "tools/list": {"tools": []},
}
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") in KNOWN:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": KNOWN[message["method"]]}), flush=True)
"#;

#[derive(Debug, Clone, Copy)]
pub(crate) enum After {
    TypeScript2,
    Python2,
}

impl After {
    fn command(self, installed: &Installed) -> String {
        match self {
            Self::TypeScript2 => {
                format!("node '{}' --stdio", scripts().join("conformance/server.mjs").display())
            }
            Self::Python2 => {
                format!("'{}' -m mcp_server_time --local-timezone UTC", installed.path("py2/bin/python"))
            }
        }
    }

    fn call(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::TypeScript2 => ("s__test_simple_text", "{}", "simple text response"),
            Self::Python2 => {
                let arguments = r#"{"source_timezone":"UTC","time":"12:00","target_timezone":"Asia/Tokyo"}"#;
                ("s__convert_time", arguments, "21:00")
            }
        }
    }
}

pub(crate) fn check_renewed(after: After) {
    let Some(installed) = installed() else { return };
    let workspace = Workspace::new();
    let (program, before) = (workspace.path().join("server"), workspace.path().join("before.py"));
    fs::write(&before, BEFORE).expect("a server");
    let put = |command: &str| fs::write(&program, format!("exec {command}\n")).expect("a program");
    put(&format!("'{}' '{}'", installed.path("py2/bin/python"), before.display()));
    // Read by a shell: a program that was just written may be busy while another test starts a process.
    let environment = json!({ "PLUGBAY_E2E_DIR": installed.folder });
    let own = json!({ "warm": "always" });
    let entry = json!({ "command": "sh", "args": [program], "env": environment, "plugbay": own });
    workspace.write_config(&Config::new().entry("s", entry));
    Gateway::meet(&workspace);

    put(&after.command(installed));
    let host = workspace.serve(&gateway_path(env!("CARGO_BIN_EXE_plugbay")));
    host.discover();
    let (tool, arguments, expected) = after.call();
    host.await_tools(&[tool]);
    let answer = host.call(tool, arguments);
    assert!(answer.content_text().contains(expected), "{after:?}: {answer:?}");
    let legacy = answer.result_value()["_meta"]["io.modelcontextprotocol/serverInfo"].is_null();
    assert!(legacy, "{after:?} was asked anew: {answer:?}");
    host.finish();
}
