//! `WWW-Authenticate`: names are in lower case, and a challenge that is written out again parses the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugbay_auth::fuzzing::parse_challenges;

fuzz_target!(|header: &str| {
    let challenges = parse_challenges(header);
    let written: Vec<String> = challenges
        .iter()
        .map(|challenge| {
            let parameters = challenge.parameters.iter().map(|(name, value)| {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                format!("{name}=\"{value}\"")
            });
            format!("{} {}", challenge.scheme, parameters.collect::<Vec<_>>().join(", "))
        })
        .collect();
    let written = written.join(", ");
    if written.len() < 8 * 1024 {
        assert_eq!(challenges, parse_challenges(&written), "{written}");
    }
});
