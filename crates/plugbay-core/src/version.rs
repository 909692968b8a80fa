//! Versions of programs, for comparison.

/// The numbers of a version: `1.18.33-beta` is older than `1.19`. Empty if it does not begin with a number.
pub fn numbers(version: &str) -> Vec<u64> {
    let version = version.trim().trim_start_matches('v');
    if !version.starts_with(|first: char| first.is_ascii_digit()) {
        return Vec::new();
    }
    let core = version.split(['-', '+', ' ']).next().unwrap_or_default();
    let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>();
    core.split('.').map(|part| digits(part).parse().unwrap_or(u64::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(numbers("2.1.197") < numbers("2.1.325"));
        assert!(numbers("1.9") < numbers("1.10.0-beta.1"));
        assert_eq!(numbers("3.0.1+build"), [3, 0, 1]);
        assert_eq!(numbers("v2.1.325rc1"), [2, 1, 325]);
        assert_eq!(numbers("2.1.400 (Claude Code)"), [2, 1, 400]);
        assert_eq!(numbers("latest"), [0; 0]);
    }
}
