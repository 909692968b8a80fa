//! The few fields the server reads of a message; everything else stays raw.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Params<'a> {
    #[serde(borrow, rename = "_meta")]
    pub(crate) meta: Meta<'a>,
    pub(crate) protocol_version: Option<String>,
    pub(crate) cursor: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: Arguments,
    #[serde(borrow)]
    pub(crate) request_id: Option<&'a RawValue>,
    pub(crate) notifications: Filter,
    #[serde(borrow)]
    pub(crate) input_responses: Option<&'a RawValue>,
    pub(crate) request_state: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    pub(crate) progress_token: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) version: Option<String>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(crate) capabilities: Option<&'a RawValue>,
}

/// The only argument that a behaviour reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Arguments {
    pub(crate) wait: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Filter {
    pub(crate) tools_list_changed: bool,
}

impl<'a> Message<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The parameters we know; what does not fit counts as absent.
    pub(crate) fn read_params(&self) -> Params<'a> {
        self.params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}
