//! The cache file: after reading and writing it again, it is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Some(written) = plugbay::fuzzing::rewrite_cache(text) else { return };
    let again = plugbay::fuzzing::rewrite_cache(&written).expect("what we write can be read");
    assert_eq!(written, again);
});
