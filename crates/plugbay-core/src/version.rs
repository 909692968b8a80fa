//! Versions of programs, for comparison.

/// The numbers of a version: `1.18.33-beta` is older than `1.19`.
pub fn numbers(version: &str) -> Vec<u64> {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    core.split('.').map(|part| part.parse().unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(numbers("2.1.197") < numbers("2.1.325"));
        assert!(numbers("1.9") < numbers("1.10.0-beta.1"));
        assert_eq!(numbers("3.0.1+build"), [3, 0, 1]);
    }
}
