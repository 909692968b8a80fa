//! Keys of a call that mean nothing.

use super::{
    Envelope, FILTER, Inner, Opened, Problem, REMARKS, WRAPPERS, example, listed, no_parameters, quoted, word,
};

impl Opened<'_> {
    /// The problem of keys beside the arguments that belong to nothing.
    pub(super) fn stray(&self, keys: &[&str], tool: &Inner<'_>) -> Problem {
        let Envelope { arguments: right, names, .. } = self.envelope;
        let known = listed(tool.takes.listed());
        let takes = if known.is_empty() { "none are known" } else { &known };
        let (which, are) = match keys {
            [only] => (quoted(only), "is no parameter"),
            several => (listed(several.iter().copied()), "are no parameters"),
        };
        let name = word(tool.name);
        let message = format!("{which} beside `{right}` {are} of this call, nor of {name}: {takes}");
        let arguments = example(tool.schema, tool.schema.root()).filter(serde_json::Value::is_object);
        let call = arguments.map(|arguments| serde_json::json!({ names[0]: tool.name, right: arguments }));
        Problem { example: call.map(|call| call.to_string()), ..Problem::root(&message) }
    }

    /// What is said if no tool is named: one of the keys that mean nothing may be meant for the name.
    pub(super) fn without_name(&self) -> String {
        let Envelope { names, arguments, own, source, .. } = self.envelope;
        let known: Vec<&str> = [names[0], arguments, FILTER].into_iter().chain(own.iter().copied()).collect();
        let is_known = |key: &str| {
            let words = known.iter().chain(&WRAPPERS).chain(&REMARKS).chain(&self.envelope.server);
            words.chain(self.envelope.aside).any(|word| self.mode.is(key, word))
        };
        let missing = format!("`{}` is missing: the tool to call, as {source} shows it", names[0]);
        let strange = self.entries.iter().map(|entry| entry.key.as_str()).filter(|key| !is_known(key));
        [missing, no_parameters(strange, &known)].join("\n").trim_end().to_owned()
    }
}
