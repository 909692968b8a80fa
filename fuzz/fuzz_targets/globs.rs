//! Globs: one without special characters matches only itself, and `*` matches everything.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugbay_core::policy::{Patterns, ToolGrant};

// The glob is on the first line, the name below.
fuzz_target!(|input: &str| {
    let (glob, tool) = input.split_once('\n').unwrap_or((input, ""));
    let _ = ToolGrant::compile([glob]);
    let Ok(patterns) = Patterns::compile([glob]) else { return };
    let matches = patterns.matches(tool);
    if !glob.is_empty() && glob.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        assert_eq!(matches, glob == tool, "{glob:?} and {tool:?}");
    }
    assert!(Patterns::compile([glob, "*"]).is_ok_and(|all| all.matches(tool)));
});
