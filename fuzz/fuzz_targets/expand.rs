//! `${VAR}` in texts of the configuration: what is filled in, and which variables are told as unset.
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
    // A value is not filled in again, so a variable that holds its own reference changes nothing.
    if let Some(whole) = whole.filter(|_| !text.contains("env:") && !text.contains(":-")) {
        assert_eq!(whole, text);
    }
    // Each unset variable is in the text, and a value for all of them is enough.
    assert!(unset.iter().all(|name| text.contains(name.as_str())));
});
