//! `requestState`: it opens only for its owner and its request, and no other text opens at all.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugbay_downstream::fuzzing::SealedState;

// The name, the arguments and a forged state, one per line.
fuzz_target!(|input: &str| {
    let mut lines = input.splitn(3, '\n');
    let (name, arguments) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let (ticket, forged) = (input.len() as u64, lines.next().unwrap_or_default());
    let sealed = SealedState::new(ticket, name, arguments);
    assert_eq!(sealed.open(&sealed.text, name, arguments), Some(ticket));
    for state in [forged.to_owned(), format!("{}{forged}", sealed.text), format!("{}{forged}", sealed.mark())]
    {
        assert!(state == sealed.text || sealed.open(&state, name, arguments).is_none(), "{state}");
    }
    if forged != name {
        assert_eq!(sealed.open(&sealed.text, forged, arguments), None, "another name");
    }
});
