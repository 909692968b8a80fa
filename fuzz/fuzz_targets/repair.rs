//! Repaired arguments fit their schema, and a second repair changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugbay_core::arguments::{CompiledSchema, Mode, check};

// The schema is on the first line, the arguments are below.
fuzz_target!(|input: &str| {
    let (schema, arguments) = input.split_once('\n').unwrap_or((input, "{}"));
    let compiled = CompiledSchema::new(schema.as_bytes());
    let Ok(repaired) = check(&compiled, arguments.as_bytes(), Mode::Repair) else { return };
    let again = check(&compiled, &repaired.arguments, Mode::Repair).expect("repaired arguments fit");
    assert_eq!(again.arguments, repaired.arguments);
    assert!(again.repairs.is_empty(), "{:?} after {:?}", again.repairs, repaired.repairs);
    if repaired.repairs.is_empty() {
        assert_eq!(&*repaired.arguments, arguments.as_bytes(), "unchanged without a repair");
    }
});
