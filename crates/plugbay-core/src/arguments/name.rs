//! Names that are the same but for case and separators.

/// `filePath`, `file_path`, `File-Path` → `filepath`.
pub(super) fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The one of several that is meant; `None` if that is none of them, or not clear.
pub(super) fn only_match<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(wanted);
    let mut alike = known.filter(|name| folded(name) == wanted && !wanted.is_empty());
    let first = alike.next()?;
    alike.next().is_none().then_some(first)
}
