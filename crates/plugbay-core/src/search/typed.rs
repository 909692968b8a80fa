//! Literals in a query: URLs, addresses of people, paths and file names. What is wanted follows from their
//! kind, hardly from their letters.

/// A piece of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Words between blanks.
    Words(&'a str),
    Literal(Literal<'a>),
}

/// A literal, and the parts of it that may matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Literal<'a> {
    /// The words that it counts as.
    pub(super) kind: &'static str,
    /// The extension of a file.
    pub(super) extension: Option<&'a str>,
    /// Words of it that may name a server, or a tool.
    pub(super) hints: &'a str,
}

/// The longest literal, in bytes: nobody types a longer piece without blanks.
const LONGEST: usize = 2 << 10;
/// The ends of names that are taken for those of hosts: the ones that people type without a scheme.
const DOMAINS: [&str; 18] = [
    "ai", "app", "at", "ch", "co", "com", "de", "dev", "edu", "eu", "fr", "gov", "info", "io", "net", "nl",
    "org", "uk",
];
/// The ends of file names that people type: of texts, programs, documents, pictures, sound, archives.
const EXTENSIONS: [&str; 56] = [
    "avi", "bat", "bmp", "c", "cfg", "conf", "cpp", "cs", "css", "csv", "db", "doc", "docx", "env", "flac",
    "gif", "go", "gz", "h", "html", "ini", "ipynb", "java", "jpeg", "jpg", "js", "json", "jsx", "kt", "lock",
    "log", "md", "mov", "mp3", "mp4", "pdf", "php", "png", "pptx", "py", "rb", "rs", "sh", "sql", "sqlite",
    "svg", "swift", "tar", "toml", "ts", "tsx", "txt", "wav", "xlsx", "yaml", "zip",
];
/// Those of them that make one word the name of a product, not of a file, as in `node.js`.
const PRODUCTS: [&str; 2] = ["js", "go"];

/// Calls `found` with the pieces of a sentence, in their order.
pub(super) fn each<'a>(sentence: &'a str, mut found: impl FnMut(Piece<'a>)) {
    // Nearly every query has no literal.
    if !sentence.contains(['.', '/', '@']) {
        return found(Piece::Words(sentence));
    }
    let (mut start, mut at) = (0, 0);
    for chunk in sentence.split_inclusive(char::is_whitespace) {
        if let Some(literal) = literal(chunk) {
            if start < at {
                found(Piece::Words(&sentence[start..at]));
            }
            found(Piece::Literal(literal));
            start = at + chunk.len();
        }
        at += chunk.len();
    }
    if start < at {
        found(Piece::Words(&sentence[start..at]));
    }
}

/// Whether a mark ends a sentence: inside a word, none does.
pub(super) fn ends_sentence(mark: char, behind: &str) -> bool {
    match mark {
        '\n' | '。' | '？' | '！' => true,
        '.' | '?' | '!' | ';' => {
            behind.chars().next().is_none_or(|next| next.is_whitespace() || !next.is_ascii())
        }
        _ => false,
    }
}

fn literal(chunk: &str) -> Option<Literal<'_>> {
    let text = chunk.trim_matches(|c: char| c.is_whitespace() || "\"'`()[]<>{},;:!?".contains(c));
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.len() < 3 || text.len() > LONGEST {
        return None;
    }
    url(text).or_else(|| address(text)).or_else(|| file(text))
}

fn url(text: &str) -> Option<Literal<'_>> {
    let (is_url, rest) = match text.split_once("://") {
        Some((scheme, rest)) => {
            (!scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric()), rest)
        }
        None => (false, text),
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let name = host.split(':').next().unwrap_or_default();
    if !is_url && (!is_host(name) || host.contains('@')) {
        return None;
    }
    let hints = name.rsplit_once('.').map_or(name, |(before, _)| before);
    Some(Literal { kind: "url", extension: None, hints: hints.strip_prefix("www.").unwrap_or(hints) })
}

/// Whether a name has dots and ends like that of a host.
fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let known = |end: &str| DOMAINS.contains(&end.to_ascii_lowercase().as_str());
    name.rsplit_once('.').is_some_and(|(_, end)| known(end)) && name.split('.').all(is_label)
}

fn address(text: &str) -> Option<Literal<'_>> {
    let text = text.strip_prefix("mailto:").unwrap_or(text);
    let (person, host) = text.split_once('@')?;
    let is_person = !person.is_empty() && !person.contains('/');
    let is_host =
        host.contains('.') && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    (is_person && is_host).then_some(Literal { kind: "email", extension: None, hints: "" })
}

fn file(text: &str) -> Option<Literal<'_>> {
    let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').and_then(|(stem, end)| {
        let known = EXTENSIONS.contains(&end.to_ascii_lowercase().as_str());
        let is_product = !text.contains('/') && PRODUCTS.contains(&end) && !stem.contains(['_', '-', '.']);
        (known && !is_product && !stem.ends_with('.')).then_some(end)
    });
    let begins = ["/", "~/", "./", "../"].iter().any(|start| text.starts_with(start));
    let is_path = begins && text.len() > 2 || text.ends_with('/') || text.matches('/').count() > 1;
    // A path needs letters: `1/2/2026` is a date.
    if extension.is_none() && (!is_path || !text.bytes().any(|byte| byte.is_ascii_alphabetic())) {
        return None;
    }
    let kind = if extension.is_none() && text.ends_with('/') { "directory" } else { "file" };
    Some(Literal { kind, extension, hints: "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(text: &str) -> Vec<(&str, Option<&str>, &str)> {
        let mut found = Vec::new();
        each(text, |piece| {
            if let Piece::Literal(Literal { kind, extension, hints }) = piece {
                found.push((kind, extension, hints));
            }
        });
        found
    }

    #[test]
    fn literals_of_a_query_count_by_their_kind() {
        for (text, expected) in [
            ("open https://a.example/x?y=1.", ("url", None, "a")),
            ("go to google.com", ("url", None, "google")),
            ("see (www.github.com/x/y)", ("url", None, "github")),
            ("http://localhost:8080/health", ("url", None, "localhost")),
            ("mail ada.l@example.co.uk, please", ("email", None, "")),
            ("read ~/notes/todo.txt", ("file", Some("txt"), "")),
            ("read /etc/hosts", ("file", None, "")),
            ("edit src/main.rs", ("file", Some("rs"), "")),
            ("list /home/ada/", ("directory", None, "")),
            ("README.md", ("file", Some("md"), "")),
            ("find *.py", ("file", Some("py"), "")),
        ] {
            assert_eq!(literals(text), [expected], "{text}");
        }
    }

    #[test]
    fn words_with_marks_in_them_are_no_literals() {
        for text in [
            "and/or",
            "node.js docs",
            "tcp/ip",
            "1/2/2026",
            "v1.2",
            "e.g. this",
            "a@b",
            "create issue.",
            "3.5",
            "/",
            "...",
        ] {
            assert_eq!(literals(text), [], "{text}");
        }
    }

    #[test]
    fn a_mark_inside_a_word_ends_no_sentence() {
        assert!(!ends_sentence('.', "txt is long") && !ends_sentence('?', "q=1"));
        assert!(ends_sentence('.', " Then") && ends_sentence('?', "") && ends_sentence('\n', "x"));
    }
}
