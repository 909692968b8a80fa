//! Names: the exposed name leads back to the names of server and tool, unless it has a mark.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugbay_core::name::{self, ServerName, ServerPrefixes};

// A server and two tools, one per line.
fuzz_target!(|input: &str| {
    let mut lines = input.splitn(3, '\n');
    let (server, tool) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let other = lines.next().unwrap_or_default();
    let limit = 64;
    let _ = name::nearest(tool, [other, server]);
    let _ = name::only_match(tool, [other, server].into_iter());
    let _ = (name::without_host(tool), name::own(tool), name::identifier(tool));
    if let Some(suggested) = ServerName::suggest(server) {
        assert!(ServerName::parse(suggested.as_str()).is_ok());
    }
    let Ok(server) = ServerName::parse(server) else { return };
    let exposed = name::expose(&server, tool, limit);
    assert!(exposed.len() <= limit, "{exposed}");
    assert!(exposed.is_ascii());
    if !name::is_marked(&exposed) {
        assert_eq!(name::split(&exposed), Some((server.as_str(), tool)));
    }
    if tool != other {
        assert_ne!(exposed, name::expose(&server, other, limit), "two tools fall together");
    }
    let prefixes = ServerPrefixes::new([&server]);
    let _ = (prefixes.claim(&server, tool), prefixes.without_host(other));
    if !name::folded(server.as_str()).is_empty() {
        for spelling in [exposed, server.as_str().to_uppercase(), format!("{server}.{tool}")] {
            assert_eq!(prefixes.of(&spelling), [&server], "{spelling:?} begins with its server");
        }
    }
});
