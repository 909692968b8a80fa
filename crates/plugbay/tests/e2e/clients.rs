//! The real clients. Each connects to one server, lists its tools and makes some calls.

use std::{
    fs::{self, File},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use plugbay_testkit::{Workspace, wait_until};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    installed::{Installed, scripts},
    peers::is_http,
    world::Call,
};

/// Time limit for a whole conversation with cold interpreters, on a machine at ten times its load.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    TypeScript1,
    TypeScript2,
    Python1,
    Python2,
    Inspector,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// The results that a client has got.
#[derive(Debug, Deserialize)]
pub(crate) struct Seen {
    pub(crate) era: Era,
    pub(crate) tools: Vec<Value>,
    /// `{"result": …}` or `{"error": …}` for each call, and from the SDKs `"progress": […]`.
    pub(crate) results: Vec<Value>,
    /// The resources and other items that it was asked to read.
    #[serde(default, rename = "looked")]
    pub(crate) resources: Value,
}

impl Client {
    /// Runs the client against the program or the address of `entry`. Every called tool must have been
    /// listed, and `afterwards` must be listed after all calls.
    pub(crate) fn run(
        self,
        workspace: &Workspace,
        installed: &Installed,
        era: Era,
        entry: &Value,
        calls: &[Call],
        afterwards: &[String],
    ) -> Seen {
        if self == Self::Inspector {
            assert!(afterwards.is_empty(), "the inspector lists only once");
            return inspect(workspace, installed, era, entry, calls);
        }
        let mut plan = plan(workspace, self, era, entry, calls);
        plan["afterwards"] = json!(afterwards);
        self.follow(workspace, installed, &plan)
    }

    /// Reads resources, prompts and completions; `wanted` names them.
    pub(crate) fn look(
        self,
        workspace: &Workspace,
        installed: &Installed,
        era: Era,
        entry: &Value,
        wanted: Value,
    ) -> Seen {
        let mut plan = plan(workspace, self, era, entry, &[]);
        plan["look"] = wanted;
        self.follow(workspace, installed, &plan)
    }

    /// Calls a tool and polls its task.
    pub(crate) fn look_after(
        workspace: &Workspace,
        installed: &Installed,
        era: Era,
        entry: &Value,
        wanted: &Value,
    ) -> Value {
        let plan = extended(plan(workspace, Self::TypeScript1, era, entry, &[]), wanted);
        printed(&script(workspace, installed, "node", "task-client.mjs", &plan))
    }

    /// Makes a client of the skills extension read all skills, and get the `wanted` ones.
    pub(crate) fn read_skills(
        workspace: &Workspace,
        installed: &Installed,
        era: Era,
        entry: &Value,
        wanted: &Value,
    ) -> Value {
        let plan = extended(plan(workspace, Self::TypeScript2, era, entry, &[]), wanted);
        printed(&script(workspace, installed, "node", "skills-client.mjs", &plan))
    }

    fn follow(self, workspace: &Workspace, installed: &Installed, plan: &Value) -> Seen {
        let (program, name) = match self {
            Self::Python1 => (installed.path("py1/bin/python"), "py_client.py"),
            Self::Python2 => (installed.path("py2/bin/python"), "py_client.py"),
            _ => ("node".to_owned(), "ts-client.mjs"),
        };
        let output = script(workspace, installed, &program, name, plan);
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error} in {output}"))
    }
}

/// Passes a plan to one of our scripts; returns the script's output.
fn script(workspace: &Workspace, installed: &Installed, program: &str, name: &str, plan: &Value) -> String {
    let file = scratch(workspace, "plan");
    fs::write(&file, plan.to_string()).expect("plan");
    let mut command = Command::new(program);
    run(workspace, command.arg(scripts().join(name)).arg(file).env("PLUGBAY_E2E_DIR", &installed.folder))
}

fn plan(workspace: &Workspace, client: Client, era: Era, entry: &Value, calls: &[Call]) -> Value {
    let expect: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    let calls: Vec<Value> =
        calls.iter().map(|call| json!({"name": call.tool, "arguments": call.arguments})).collect();
    json!({
        "sdk": if client == Client::TypeScript2 { "v2" } else { "v1" },
        "era": era.word(),
        "command": entry["command"],
        "args": entry["args"],
        "url": entry["url"],
        "type": entry["type"],
        "env": environment(workspace, entry),
        "cwd": workspace.path(),
        "expect": expect,
        "calls": calls,
    })
}

/// Runs the inspector's command line once per call, because it does one thing per run.
fn inspect(workspace: &Workspace, installed: &Installed, era: Era, entry: &Value, calls: &[Call]) -> Seen {
    let node = installed.newer_node().expect("checked before");
    let file = scratch(workspace, "inspector");
    let mut entry = entry.clone();
    if !is_http(&entry) {
        entry["env"] = environment(workspace, &entry);
    }
    fs::write(&file, json!({"mcpServers": {"target": entry}}).to_string()).expect("inspector's config");
    let inspect = |method: &[&str]| -> Value {
        let mut command = Command::new(&node);
        command.arg(
            installed.path("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"),
        );
        command.args(["--cli", "--config", &file, "--server", "target", "--protocol-era", era.word()]);
        command.args(["--connect-timeout", "240000", "--format", "json", "--quiet", "--method"]).args(method);
        let output = run(workspace, &mut command);
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error} in {output}"))
    };
    let wanted: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    let tools = wait_until(&format!("{wanted:?} in the inspector's list"), PATIENCE, || {
        let tools = inspect(&["tools/list"])["result"]["tools"].as_array().cloned().unwrap_or_default();
        wanted.iter().all(|name| tools.iter().any(|tool| tool["name"] == **name)).then_some(tools)
    });
    let results = calls
        .iter()
        .map(|call| {
            let arguments = call.arguments.to_string();
            inspect(&["tools/call", "--tool-name", &call.tool, "--tool-args-json", &arguments])
        })
        .collect();
    Seen { era, tools, results, resources: Value::Null }
}

/// The workspace's environment, overridden by the variables of the entry.
fn environment(workspace: &Workspace, entry: &Value) -> Value {
    let mut all: serde_json::Map<String, Value> =
        workspace.environment().into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect();
    all.extend(entry["env"].as_object().cloned().unwrap_or_default());
    all.into()
}

/// Runs a command to its end and returns stdout. The output goes to files, so that nothing can block.
fn run(workspace: &Workspace, command: &mut Command) -> String {
    let (out, err) = (scratch(workspace, "stdout"), scratch(workspace, "stderr"));
    command
        .stdin(Stdio::null())
        .stdout(File::create(&out).expect("file"))
        .stderr(File::create(&err).expect("file"));
    command.current_dir(workspace.path()).envs(workspace.environment());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let status =
        wait_until(&format!("{command:?} (its words: {err})"), PATIENCE, || child.try_wait().expect("wait"));
    let read = |file: &str| String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned();
    let output = read(&out);
    // The inspector exits with its own code if a tool reports `isError`.
    assert!(status.success() || !output.is_empty(), "{command:?}: {status}\n{output}\n{}", read(&err));
    output
}

fn scratch(workspace: &Workspace, name: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    workspace.path().join(format!("tmp/{name}-{number}")).to_string_lossy().into_owned()
}

impl Era {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

fn extended(mut plan: Value, wanted: &Value) -> Value {
    plan.as_object_mut().expect("an object").extend(wanted.as_object().cloned().expect("an object"));
    plan
}

fn printed(output: &str) -> Value {
    serde_json::from_str(output).unwrap_or_else(|error| panic!("{error} in {output}"))
}
