//! The output of a server before it failed, and the recognition of causes in it.

use plugbay_core::failure::Failure;

/// The lines of a failure, the most telling ones first.
pub struct Said<'a> {
    failure: &'a Failure,
}

impl<'a> Said<'a> {
    pub fn of(failure: &'a Failure) -> Self {
        Self { failure }
    }

    /// All lines: stderr first, then the reason, then text on stdout.
    pub fn lines(&self) -> impl Iterator<Item = &'a str> {
        let Failure { what, stderr, stdout, .. } = self.failure;
        stderr.iter().chain([what]).chain(stdout).map(String::as_str)
    }

    /// The first line with one of these signs, ignoring case.
    pub fn line_with(&self, signs: &[&str]) -> Option<&'a str> {
        self.lines().find(|line| has(line, signs))
    }

    /// Short evidence: the last line of stderr, or the reason.
    pub fn last(&self) -> String {
        self.failure.stderr.last().unwrap_or(&self.failure.what).clone()
    }
}

/// Whether a line has one of these signs, ignoring case.
pub fn has(line: &str, signs: &[&str]) -> bool {
    let line = line.to_ascii_lowercase();
    signs.iter().any(|sign| line.contains(&sign.to_ascii_lowercase()))
}

/// The words of a line that may be names of environment variables.
pub fn variables(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| {
        let named = word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let begins = word.starts_with(|c: char| c.is_ascii_uppercase());
        named && begins && word.len() > 3 && !is_error_code(word)
    })
}

/// Codes of Node and npm, which look like variables.
fn is_error_code(word: &str) -> bool {
    let network = ["ENOENT", "EACCES", "ECONNREFUSED", "ENOTFOUND", "EADDRINUSE", "ETIMEDOUT", "EPIPE"];
    word.starts_with("ERR_") || word.ends_with("_NOT_FOUND") || network.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variables_are_told_from_error_codes() {
        let found = |line| variables(line).collect::<Vec<_>>();
        assert_eq!(found("Error: GITHUB_TOKEN is not set (ERR_MODULE_NOT_FOUND)"), ["GITHUB_TOKEN"]);
        assert_eq!(found("KeyError: 'API_KEY2'"), ["API_KEY2"]);
        assert!(found("connect ECONNREFUSED, see README or Foo_BAR").iter().eq(&["README"]));
    }
}
