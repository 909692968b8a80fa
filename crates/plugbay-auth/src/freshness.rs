//! Decides when a token is refreshed: before it ends, and by a clock that may be wrong.

use crate::store::Tokens;

/// Whether a token can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    Fresh,
    /// It is still valid, but should be refreshed.
    Due,
    Expired,
}

/// Time that a request may take to arrive, in seconds.
const MARGIN: u64 = 10;

/// The freshness of a token at this time, in seconds since 1970. A server that rejects it has the last word.
pub fn freshness(tokens: &Tokens, now: u64) -> Freshness {
    let Some(life) = tokens.expires_in else { return Freshness::Fresh };
    let Some(age) = now.checked_sub(tokens.issued_at) else {
        // The clock was set back since, so the age is unknown.
        return if tokens.issued_at - now > life { Freshness::Due } else { Freshness::Fresh };
    };
    if age + MARGIN.min(life / 10) >= life {
        Freshness::Expired
    } else if age >= life / 5 * 4 {
        Freshness::Due
    } else {
        Freshness::Fresh
    }
}

#[cfg(test)]
mod tests {
    use plugbay_core::secret::Secret;

    use super::*;

    #[test]
    fn a_token_is_refreshed_at_80_percent_of_its_life() {
        use Freshness::{Due, Expired, Fresh};
        let check = |life: Option<u64>, now: u64, expected: Freshness| {
            let tokens = Tokens {
                access: Secret::new("a"),
                refresh: None,
                issued_at: 10_000,
                expires_in: life,
                scopes: vec![],
                is_dpop: false,
            };
            assert_eq!(freshness(&tokens, now), expected, "{life:?} {now}");
        };
        check(Some(600), 10_000, Fresh);
        check(Some(600), 10_479, Fresh);
        check(Some(600), 10_480, Due);
        check(Some(600), 10_589, Due);
        check(Some(600), 10_590, Expired);
        check(Some(600), 99_999, Expired);
        check(Some(0), 10_000, Expired);
        check(Some(5), 10_003, Fresh);
        check(Some(5), 10_004, Due);
        check(Some(5), 10_005, Expired);
        check(None, u64::MAX, Fresh);
        // The clock was set back, by a little or by much.
        check(Some(600), 9_700, Fresh);
        check(Some(600), 100, Due);
        check(Some(u64::MAX), 10_001, Fresh);
    }
}
