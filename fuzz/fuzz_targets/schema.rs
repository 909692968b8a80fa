//! Compiling a schema and checking arguments against it: accepted arguments are sent unchanged.
#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::fuzz_target;
use plugbay_core::{
    arguments::{CompiledSchema, Mode, check},
    catalog::Tool,
    signature::Signature,
};
use serde::de::IgnoredAny;

// The schema is on the first line, the arguments are below.
fuzz_target!(|input: &str| {
    let (schema, arguments) = input.split_once('\n').unwrap_or((input, "{}"));
    let compiled = CompiledSchema::new(schema.as_bytes());
    if let Ok(checked) = check(&compiled, arguments.as_bytes(), Mode::CheckOnly) {
        assert!(matches!(checked.arguments, Cow::Borrowed(same) if same == arguments.as_bytes()));
        assert!(checked.repairs.is_empty());
        // Numbers out of range are JSON too, but a `Value` cannot represent them.
        assert!(serde_json::from_str::<IgnoredAny>(arguments).is_ok(), "what is accepted is JSON");
    }
    let definition = format!(r#"{{"name":"a","inputSchema":{schema}}}"#);
    if let Some(tool) = Tool::parse(definition.into()) {
        let _ = Signature::of("s__a", &tool).line(200);
    }
});
