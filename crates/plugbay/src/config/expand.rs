//! `${VAR}`, `${VAR:-default}`, `${env:VAR}` and the names of a few folders in text.

use std::path::Path;

use super::{
    Env,
    paths::{Paths, project_folder},
};

/// The folder names that a reference may use.
pub(super) const FOLDERS: [&str; 3] = ["workspaceFolder", "workspaceFolderBasename", "userHome"];

/// Adds the folders that hosts have names for to the environment: `${workspaceFolder}`,
/// `${workspaceFolderBasename}` and `${userHome}`. They override variables of the same name.
pub fn with_folders(paths: &Paths, env: Env<'_>) -> impl Fn(&str) -> Option<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    move |name| match name {
        "workspaceFolder" => Some(text(project_folder(&paths.start))),
        "workspaceFolderBasename" => {
            let name = project_folder(&paths.start).file_name().unwrap_or_default();
            Some(name.to_string_lossy().into_owned())
        }
        "userHome" => paths.home.as_deref().map(text),
        _ => env(name),
    }
}

/// The reason why a text could not be expanded. Never contains a value from the environment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExpandError {
    /// There is no such variable, and no default.
    Unset { variable: String, reference: String },
    /// A `${kind:…}` that only another program can expand.
    Foreign { reference: String },
    /// `${` without `}`.
    Unclosed,
}

/// Expands `text`. Other text stays unchanged: `$VAR`, `$$`, `${x%y}` may be meant for a shell that the
/// server starts.
pub(super) fn expand(text: &str, env: Env<'_>) -> Result<String, ExpandError> {
    let mut filled = String::with_capacity(text.len());
    for (before, inner) in references(text) {
        filled.push_str(before);
        match inner {
            Some(Ok(inner)) => filled.push_str(&reference(inner, env)?),
            Some(Err(unclosed)) => return Err(unclosed),
            None => {}
        }
    }
    Ok(filled)
}

#[cfg(fuzzing)]
pub(crate) fn expanded(text: &str, env: Env<'_>) -> Option<String> {
    expand(text, env).ok()
}

/// The variables in a text that are not set and have no default.
pub fn unset_variables(text: &str, env: Env<'_>) -> Vec<String> {
    let unset = references(text).filter_map(|(_, inner)| match reference(inner?.ok()?, env) {
        Err(ExpandError::Unset { variable, .. }) => Some(variable),
        _ => None,
    });
    unset.collect()
}

/// The pieces of a text, each with the content of the reference after it. The last has none, or one that is
/// not closed.
fn references(text: &str) -> impl Iterator<Item = (&str, Option<Result<&str, ExpandError>>)> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some((before, after)) = text.split_once("${") else { return Some((text, None)) };
        let Some((inner, tail)) = after.split_once('}') else {
            return Some((before, Some(Err(ExpandError::Unclosed))));
        };
        rest = Some(tail);
        Some((before, Some(Ok(inner))))
    })
}

fn reference(inner: &str, env: Env<'_>) -> Result<String, ExpandError> {
    let literal = format!("${{{inner}}}");
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    let variable = name.strip_prefix("env:").unwrap_or(name);
    if let Some((kind, _)) = variable.split_once(':')
        && is_name(kind)
    {
        return Err(ExpandError::Foreign { reference: format!("${{{name}}}") });
    }
    if !is_name(variable) {
        return Ok(literal);
    }
    // As in a shell, `:-` also replaces a variable that is set but empty.
    match (env(variable), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(ExpandError::Unset { variable: variable.into(), reference: literal }),
    }
}

fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let env = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${A}".to_owned()),
            _ => None,
        };
        let found = expand(text, &env).unwrap_or_else(|error| format!("{error:?}"));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn our_forms_are_filled_in() {
        check("", "");
        check("${A}", "1");
        check("x${A}y${env:A}z", "x1y1z");
        check("${B:-d}${env:B:-e}${A:-f}", "de1");
        check("${EMPTY}|${EMPTY:-d}|${B:-}", "|d|");
        check("${B:-a:-b c}", "a:-b c");
        check("ä${A}ö", "ä1ö");
    }

    #[test]
    fn names_of_folders_are_filled_in() {
        let root = tempfile::tempdir().unwrap();
        let start = root.path().join("repository/crate");
        std::fs::create_dir_all(&start).unwrap();
        let home = Some(root.path().join("home"));
        let paths = Paths { user_file: None, state_folder: None, home, start: start.clone() };
        let env = |name: &str| (name == "workspaceFolder").then(|| "from the environment".to_owned());
        let check = |text: &str, expected: &str| {
            let expected = expected.replace("ROOT", &root.path().to_string_lossy());
            assert_eq!(expand(text, &with_folders(&paths, &env)), Ok(expected), "{text}");
        };
        check("${workspaceFolder}/x", "ROOT/repository/crate/x");
        std::fs::create_dir(root.path().join("repository/.git")).unwrap();
        check("${workspaceFolder}", "ROOT/repository");
        check("${workspaceFolderBasename}", "repository");
        check("${userHome}:${workspaceFolder:-d}", "ROOT/home:ROOT/repository");
    }

    #[test]
    fn a_value_is_not_filled_in_again() {
        check("${NESTED}", "${A}");
    }

    #[test]
    fn other_forms_stay() {
        for text in ["$A", "$$", "a$", "${}", "${A%x}", "${1}", "${A-d}", "{env:A}", "%A%"] {
            check(text, text);
        }
        check("$${A}", "$1");
    }

    #[test]
    fn unset_variables_are_those_that_cannot_be_filled_in() {
        let unset = |text: &str| unset_variables(text, &|name| (name == "A").then(String::new));
        assert_eq!(unset("${A}${B} ${C:-d} ${env:D} ${input:E}"), ["B", "D"]);
        // The inner one is no reference: the outer one ends at its first brace.
        check("${x${B}}", "${x${B}}");
        assert_eq!(unset("${x${B}} ${C"), [""; 0]);
    }

    #[test]
    fn what_cannot_be_filled_in_is_named() {
        check("k=${B}", r#"Unset { variable: "B", reference: "${B}" }"#);
        check("${env:B}", r#"Unset { variable: "B", reference: "${env:B}" }"#);
        check("${input:key}", r#"Foreign { reference: "${input:key}" }"#);
        check("${input:key:-not to be shown}", r#"Foreign { reference: "${input:key}" }"#);
        check("${A", "Unclosed");
    }
}
