//! Rule: a relative link in the documentation leads to a file, folder or heading that exists.

mod markdown;

use super::Tree;

const PAGES: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let pages = tree.markdown().filter(|(path, _)| PAGES.contains(path) || path.starts_with("docs/"));
    let mut problems = Vec::new();
    for (page, text) in pages {
        for link in markdown::links(text) {
            if let Some(problem) = problem(tree, page, &link.target) {
                problems.push(format!("{page}:{}: the link to {} {problem}", link.line, link.target));
            }
        }
    }
    problems
}

fn problem(tree: &Tree, page: &str, target: &str) -> Option<String> {
    if is_elsewhere(target) {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let place = if path.is_empty() { Some(page.to_owned()) } else { resolve(page, path) };
    let Some(place) = place.filter(|place| tree.contains(place)) else {
        return Some("leads to nothing; correct the path or take the link out".to_owned());
    };
    let (_, text) = tree.markdown().find(|(path, _)| *path == place)?;
    let missing = anchor.filter(|anchor| !markdown::anchors(text).contains(*anchor))?;
    Some(format!("names no heading; {place} has none with the anchor #{missing}"))
}

/// An address with a scheme, or another host.
fn is_elsewhere(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    target.starts_with("//")
        || scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c)))
}

/// The path from the root; `None` if it leaves the repository.
fn resolve(page: &str, path: &str) -> Option<String> {
    let (folder, path) = match path.strip_prefix('/') {
        Some(absolute) => ("", absolute),
        None => (page.rsplit_once('/').map_or("", |(folder, _)| folder), path),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(page: &str, text: &str) -> Vec<String> {
        let mut files = vec![
            ("README.md", "# plugbay\n\n## How it works\n"),
            ("docs/modes.md", "# Modes\n## `search` mode\n"),
            ("docs/decisions/0001-bytes.md", "# Bytes"),
            ("LICENSE", ""),
        ];
        files.retain(|(path, _)| *path != page);
        files.push((page, text));
        check(&Tree::of(&files))
    }

    #[test]
    fn links_to_what_exists_are_right() {
        for (page, target) in [
            ("README.md", "docs/modes.md#search-mode"),
            ("README.md", "docs/decisions"),
            ("README.md", "./docs/decisions/"),
            ("README.md", "LICENSE#L1"),
            ("docs/more.md", "../README.md#how-it-works"),
            ("docs/decisions/0002-x.md", "0001-bytes.md#bytes"),
            ("docs/more.md", "/LICENSE"),
            ("README.md", "https://example.org/nowhere#x"),
            ("README.md", "mailto:a@example.org"),
        ] {
            assert_eq!(problems(page, &format!("See [this]({target}).")), [""; 0], "{target}");
        }
        assert_eq!(problems("docs/more.md", "# Here\n[here](#here)"), [""; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_named_with_their_line() {
        for (page, target) in [
            ("README.md", "docs/gone.md"),
            ("README.md", "docs/modes.md#gone"),
            ("README.md", "#gone"),
            ("docs/more.md", "docs/modes.md"),
            ("README.md", "../outside.md"),
        ] {
            let problems = problems(page, &format!("# A\n\nSee [this]({target})."));
            assert_eq!(problems.len(), 1, "{target}");
            assert!(problems[0].starts_with(&format!("{page}:3: the link to {target} ")), "{problems:?}");
        }
    }

    #[test]
    fn other_pages_are_not_checked() {
        assert_eq!(problems("crates/x/NOTES.md", "[a](gone.md)"), [""; 0]);
    }
}
