//! `${VAR}` in texts of the configuration: the expanded text, and the variables that are reported as unset.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugbay::{config::unset_variables, fuzzing::expand};

fuzz_target!(|text: &str| {
    let none = |_: &str| None;
    let itself = |name: &str| Some(format!("${{{name}}}"));
    let (unset, whole) = (unset_variables(text, &none), expand(text, &itself));
    assert_eq!(unset_variables(text, &itself), [""; 0]);
    if whole.is_some() {
        assert_eq!(expand(text, &none).is_some(), unset.is_empty(), "{unset:?}");
    }
    if !text.contains("${") {
        assert_eq!(expand(text, &none).as_deref(), Some(text));
    }
    // Values are not expanded again, so a variable that contains its own reference changes nothing.
    if let Some(whole) = whole.filter(|_| !text.contains("env:") && !text.contains(":-")) {
        assert_eq!(whole, text);
    }
    // Each unset variable occurs in the text, and values for all of them are enough.
    assert!(unset.iter().all(|name| text.contains(name.as_str())));
});
