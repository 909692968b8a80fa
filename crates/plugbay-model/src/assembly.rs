//! Assembles a reply from a whole response or from single events.

use plugbay_core::model::{ModelError, Reply, Stop, ToolCall, Usage};
use serde_json::value::RawValue;

/// The prefix of ids that plugbay gives to tool calls without one. Such an id is not sent back.
pub(crate) const OWN_ID: &str = "plugbay-call-";

#[derive(Debug, Default)]
pub(crate) struct Assembly {
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) usage: Usage,
    pub(crate) stop: Option<Stop>,
    /// The reason why the model or its provider refuses.
    pub(crate) refusal: Option<String>,
    /// Whether the response is complete, whatever the connection does.
    pub(crate) done: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Call {
    /// The provider's index, which later events refer to.
    pub(crate) index: u64,
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON once it is complete.
    pub(crate) arguments: String,
    pub(crate) signature: Option<String>,
}

impl Assembly {
    /// The call with this index.
    pub(crate) fn call(&mut self, index: u64) -> &mut Call {
        self.call_named(index, "")
    }

    /// The call with this index and id: some services give every call the same index.
    pub(crate) fn call_named(&mut self, index: u64, id: &str) -> &mut Call {
        let fits =
            |call: &Call| call.index == index && (id.is_empty() || call.id.is_empty() || call.id == id);
        let at = self.calls.iter().rposition(fits).unwrap_or_else(|| {
            self.calls.push(Call { index, ..Call::default() });
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        call
    }

    pub(crate) fn refuse(&mut self, words: &str) {
        self.refusal.get_or_insert_default().push_str(words);
    }

    /// Whether the stop reason is known.
    pub(crate) fn is_finished(&self) -> bool {
        self.stop.is_some() || self.refusal.is_some()
    }

    pub(crate) fn finish(self) -> Result<Reply, ModelError> {
        if let Some(words) = self.refusal {
            return Err(ModelError::Refused(words));
        }
        let stop =
            self.stop.ok_or_else(|| ModelError::Malformed("it does not say why it ends".to_owned()))?;
        let calls = self.calls.into_iter().enumerate();
        let calls = calls.map(|(at, call)| call.finish(at)).collect::<Result<Vec<_>, _>>()?;
        // Some services give the same reason for both.
        let stop = if stop == Stop::End && !calls.is_empty() { Stop::Tools } else { stop };
        Ok(Reply { text: self.text, calls, usage: self.usage, stop })
    }
}

impl Call {
    fn finish(self, at: usize) -> Result<ToolCall, ModelError> {
        let text = if self.arguments.trim().is_empty() { "{}".to_owned() } else { self.arguments };
        let arguments = RawValue::from_string(text).ok().filter(|json| json.get().starts_with('{'));
        let arguments = arguments.ok_or_else(|| {
            ModelError::Malformed(format!("the arguments of its call of {:?} are no JSON object", self.name))
        })?;
        let id = if self.id.is_empty() { format!("{OWN_ID}{at}") } else { self.id };
        Ok(ToolCall { id, name: self.name, arguments, signature: self.signature })
    }
}
