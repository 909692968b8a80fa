//! One server as a host sees it through the gateway: the names of its things, and how they are used.

use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject, ReadResourceRequestParams};
use serde_json::{Value, json};

use super::{connection::Host, notifications::List};
use crate::Trouble;

pub(super) type Seen = Result<Value, Trouble>;

pub(super) struct Visit<'a> {
    pub(super) host: &'a Host,
    pub(super) server: &'a str,
}

impl Visit<'_> {
    pub(super) async fn call(&self, tool: &str, given: Value) -> Result<CallToolResult, Trouble> {
        let call = CallToolRequestParams::new(self.exposed(tool)).with_arguments(object(given));
        Ok(self.host.client.call_tool(call).await?)
    }

    pub(super) async fn read(&self, path: &str) -> Seen {
        let read = ReadResourceRequestParams::new(self.uri(path));
        Ok(json!(self.host.client.read_resource(read).await?.contents.first()))
    }

    /// The names or addresses of what the server has in a list.
    pub(super) async fn own(&self, list: List) -> Result<Vec<String>, Trouble> {
        let client = &self.host.client;
        let all: Vec<String> = match list {
            List::Tools => client.list_all_tools().await?.into_iter().map(|tool| tool.name.into()).collect(),
            List::Resources => client.list_all_resources().await?.into_iter().map(|one| one.uri).collect(),
            List::Templates => {
                client.list_all_resource_templates().await?.into_iter().map(|one| one.uri_template).collect()
            }
            List::Prompts => client.list_all_prompts().await?.into_iter().map(|prompt| prompt.name).collect(),
        };
        let starts = [self.exposed(""), self.uri("")];
        Ok(all.into_iter().filter(|key| starts.iter().any(|start| key.starts_with(start))).collect())
    }

    pub(super) fn exposed(&self, name: &str) -> String {
        format!("{}__{name}", self.server)
    }

    pub(super) fn uri(&self, path: &str) -> String {
        format!("{}://{path}", self.server)
    }
}

pub(super) fn text_of(result: &CallToolResult) -> Result<&str, Trouble> {
    let text = result.content.first().and_then(|content| content.as_text());
    Ok(&text.ok_or("the result has no text")?.text)
}

pub(super) fn object(given: Value) -> JsonObject {
    match given {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}
