//! The few fields of a message that the server reads; everything else stays raw.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::script::Method;

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
    #[serde(borrow)]
    pub(crate) capabilities: Option<&'a RawValue>,
    pub(crate) cursor: Option<String>,
    pub(crate) name: String,
    pub(crate) uri: String,
    #[serde(rename = "ref")]
    pub(crate) reference: Reference,
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

/// The only argument that any behaviour reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Arguments {
    pub(crate) wait: usize,
}

/// The target of a completion: a prompt's name or a template's URI.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Reference {
    name: String,
    uri: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Filter {
    pub(crate) tools_list_changed: bool,
}

impl Params<'_> {
    pub(crate) fn about(&self, method: Method) -> &str {
        match method {
            Method::Call | Method::Get | Method::Other => &self.name,
            Method::Read => &self.uri,
            Method::Complete if self.reference.name.is_empty() => &self.reference.uri,
            Method::Complete => &self.reference.name,
        }
    }
}

impl<'a> Message<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// A member of the parameters, raw.
    pub(crate) fn member(&self, key: &str) -> Option<&'a str> {
        let members: BTreeMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(self.params?.get()).ok()?;
        members.get(key).map(|value| value.get())
    }

    /// The known parameters; a parameter of the wrong type counts as absent.
    pub(crate) fn read_params(&self) -> Params<'a> {
        self.params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}
