//! A secret that no message, log line or debug output can show.

use std::{borrow::Cow, cmp::Reverse, fmt, sync::Arc};

/// A token, a key or a password. Cheap to clone; only [`Secret::expose`] shows it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(Arc<str>);

impl Secret {
    pub fn new(secret: impl Into<Arc<str>>) -> Self {
        Self(secret.into())
    }

    /// The secret itself: for the request or the file that needs it, and nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// The secrets of one server by their values, each with the text that is shown in its place. Cheap to clone.
///
/// A server can repeat a secret in an error, so a [`Secret`] alone does not keep the value out of messages.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KnownSecrets(Arc<[(Secret, String)]>);

/// Shown in the place of a secret that has no name.
pub const HIDDEN: &str = "…";

/// A shorter value is no secret, and would be found in words.
const SHORTEST: usize = 4;
/// The same for a value in a place where secrets often are, but need not be.
const SHORTEST_LIKELY: usize = 8;

impl KnownSecrets {
    /// `pairs` are values with the texts that are shown instead, such as `${NAME}`.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let known = pairs.into_iter().filter(|(value, _)| value.len() >= SHORTEST);
        Self::sorted(known.map(|(value, shown)| (Secret::new(value), shown)).collect())
    }

    /// The same with further values that are likely to be secrets because of their place. Paths are not.
    #[must_use]
    pub fn and_likely<'a>(&self, pairs: impl IntoIterator<Item = (Cow<'a, str>, String)>) -> Self {
        let is_path = |value: &str| ["/", "./", "../", "~"].iter().any(|start| value.starts_with(start));
        let likely = pairs.into_iter().filter(|(value, _)| value.len() >= SHORTEST_LIKELY && !is_path(value));
        let likely = likely.map(|(value, shown)| (Secret::new(&*value), shown));
        Self::sorted(self.0.iter().cloned().chain(likely).collect())
    }

    /// The text with every secret replaced. If the text was cut, and therefore begins or ends with `…`, the
    /// rest of a secret at that place is left out too.
    pub fn hide<'a>(&self, text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
        let mut text = text.into();
        let beginnings =
            |cut: &str| self.0.iter().filter_map(|(secret, _)| begins_at_end(cut, secret.expose())).min();
        if let Some(start) = text.strip_suffix(HIDDEN).and_then(beginnings) {
            text = format!("{}{HIDDEN}", &text[..start]).into();
        }
        let rests =
            |cut: &str| self.0.iter().filter_map(|(secret, _)| ends_at_start(cut, secret.expose())).max();
        if let Some(cut) = text.strip_prefix(HIDDEN)
            && let Some(rest) = rests(cut)
        {
            text = format!("{HIDDEN}{}", &cut[rest..]).into();
        }
        self.0.iter().fold(text, |text, (secret, shown)| {
            if text.contains(secret.expose()) { text.replace(secret.expose(), shown).into() } else { text }
        })
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A secret may contain another one, so the longest comes first.
    fn sorted(mut pairs: Vec<(Secret, String)>) -> Self {
        pairs.sort_by_key(|(value, _)| Reverse(value.expose().len()));
        Self(pairs.into())
    }
}

/// The place of a secret's beginning at the end of a text.
fn begins_at_end(text: &str, secret: &str) -> Option<usize> {
    let lengths = (SHORTEST..secret.len()).rev().filter(|length| secret.is_char_boundary(*length));
    let mut found = lengths.filter(|length| text.ends_with(&secret[..*length]));
    found.next().map(|length| text.len() - length)
}

/// The length of a secret's end at the start of a text.
fn ends_at_start(text: &str, secret: &str) -> Option<usize> {
    let starts = (1..=secret.len().saturating_sub(SHORTEST)).filter(|start| secret.is_char_boundary(*start));
    let mut found = starts.map(|start| &secret[start..]).filter(|end| text.starts_with(end));
    found.next().map(str::len)
}

/// Shows no values.
impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(_, shown)| shown)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_secrets_are_hidden_the_longest_first() {
        let pairs = [("hunter2", "${A}"), ("hunter2-and-more", "${B}"), ("yes", "${C}")];
        let known = KnownSecrets::new(pairs.map(|(value, shown)| (value.to_owned(), shown.to_owned())));
        let known = known.and_likely(
            ["a-query-value", "/usr/bin/program", "short"].map(|value| (value.into(), HIDDEN.to_owned())),
        );
        let text = "hunter2-and-more, hunter2, a-query-value, yes, /usr/bin/program, short";
        assert_eq!(known.hide(text), "${B}, ${A}, …, yes, /usr/bin/program, short");
        assert!(matches!(known.hide("nothing"), Cow::Borrowed("nothing")));
        assert_eq!(known.hide("cut: hunter2-and-m…"), "cut: …", "half a secret");
        assert_eq!(known.hide("…ter2-and-more: cut"), "…: cut", "the other half");
        assert_eq!(format!("{known:?}"), r#"["${B}", "…", "${A}"]"#);
    }

    #[test]
    fn a_secret_is_not_shown_by_debug() {
        let shown = format!("{:?}", Some(Secret::new("hunter2")));
        assert_eq!(shown, "Some(…)");
    }
}
