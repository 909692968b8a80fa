//! Messages about invalid filters: the place, and a remedy for common mistakes.

use jaq_core::{
    compile::{self, Undefined},
    load::{self, lex, parse, span},
};

use super::functions;

/// How similar a known name must be to be suggested for an unknown one.
const ALIKE: f64 = 0.85;

/// The error for a filter that does not parse.
pub(super) fn of_loading(code: &str, errors: &load::Errors<&str, ()>) -> String {
    let first = errors.first().map(|(_, error)| match error {
        load::Error::Lex(errors) => errors.first().map(|error| lexing(code, error)),
        load::Error::Parse(errors) => errors.first().map(|error| parsing(code, error)),
        load::Error::Io(errors) => errors
            .first()
            .map(|(path, _)| format!("there are no modules to import or include ({})", place(code, path))),
    });
    first.flatten().unwrap_or_else(|| "it does not parse".to_owned())
}

/// The error for a function or variable that does not exist.
pub(super) fn of_compiling(code: &str, errors: &compile::Errors<&str, ()>, known: &[&str]) -> String {
    let first = errors.first().and_then(|(_, errors)| errors.first());
    let Some((name, undefined)) = first else { return "it does not compile".to_owned() };
    let (kind, arity) = match undefined {
        Undefined::Filter(arity) => ("function", Some(*arity)),
        other => (other.as_str(), None),
    };
    let with = match arity {
        None | Some(0) => String::new(),
        Some(1) => " with 1 argument".to_owned(),
        Some(arity) => format!(" with {arity} arguments"),
    };
    let remedy = remedy(code, name, arity, known).map(|remedy| format!(": {remedy}"));
    format!("there is no {kind} {name}{with} ({}){}", place(code, name), remedy.unwrap_or_default())
}

fn remedy(code: &str, name: &str, arity: Option<usize>, known: &[&str]) -> Option<String> {
    if let Some(reason) = functions::left_out(name) {
        return Some(reason.to_owned());
    }
    let arity = arity?;
    let before = before(code, name);
    if arity == 0 && before.ends_with('-') && before.trim_end_matches('-').ends_with(char::is_alphanumeric) {
        return Some("a key with a dash is written .\"a-key\"".to_owned());
    }
    if known.contains(&name) {
        return Some("it takes another number of arguments, which `;` separates".to_owned());
    }
    let likeness = |other: &str| strsim::jaro_winkler(name, other);
    let nearest = known.iter().max_by(|left, right| likeness(left).total_cmp(&likeness(right)))?;
    (likeness(nearest) >= ALIKE).then(|| format!("did you mean {nearest}?"))
}

fn lexing(code: &str, (expected, found): &lex::Error<&str>) -> String {
    let at = place(code, found);
    match (expected, found.chars().next()) {
        (lex::Expect::Delim(open), _) => format!("{open} is not closed ({})", place(code, open)),
        (lex::Expect::Token, Some('\'')) => format!("strings have double quotes ({at})"),
        (lex::Expect::Token, Some('&')) => format!("`&` is not jq: write `and` ({at})"),
        (lex::Expect::Token, Some(close @ (')' | ']' | '}'))) => format!("{close} closes nothing ({at})"),
        (lex::Expect::Token, _) => format!("{} is not jq ({at})", shown(found)),
        _ => format!("expected {}, found {} ({at})", expected.as_str(), shown(found)),
    }
}

fn parsing(code: &str, (expected, found): &parse::Error<&str>) -> String {
    let place = place(code, found);
    let rest = &code[before(code, found).len()..];
    if rest.starts_with("||") {
        return format!("`||` is not jq: write `or` ({place})");
    }
    let expected = match expected {
        parse::Expect::Nothing => "the end",
        expected => expected.as_str(),
    };
    format!("expected {expected}, found {} ({place})", shown(found))
}

/// The first word or character of the rest of a filter.
fn shown(found: &str) -> String {
    let word = found.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(found.len());
    let first = found.chars().next().map_or(0, char::len_utf8);
    match &found[..word.max(first)] {
        "" => "the end".to_owned(),
        word => format!("`{word}`"),
    }
}

/// The place of a part of the filter, counted as in an editor.
fn place(code: &str, part: &str) -> String {
    let before = before(code, part);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}")
}

/// The filter up to a part of it.
fn before<'a>(code: &'a str, part: &str) -> &'a str {
    code.get(..span(code, part).start).unwrap_or(code)
}

#[cfg(test)]
mod tests {
    use super::super::Library;

    #[track_caller]
    fn check(filter: &str, expected: &str) {
        assert_eq!(Library::load().compiled(filter).err().as_deref(), Some(expected), "{filter}");
    }

    #[test]
    fn a_filter_that_does_not_parse_is_told_its_place() {
        check("map(.a", "( is not closed (line 1, column 4)");
        check("map(.a))", ") closes nothing (line 1, column 8)");
        check(".a |\n\"ä", "\" is not closed (line 2, column 1)");
        check(".[] |", "expected term, found the end (line 1, column 6)");
        check("if . then 1", "expected else or end, found the end (line 1, column 12)");
        check(".a .b c", "expected the end, found `c` (line 1, column 7)");
        check("'.a'", "strings have double quotes (line 1, column 1)");
        check(".a && .b", "`&` is not jq: write `and` (line 1, column 4)");
        check(".a || .b", "`||` is not jq: write `or` (line 1, column 4)");
        check(".a § 1", "`§` is not jq (line 1, column 4)");
    }

    #[test]
    fn an_unknown_function_is_named_with_a_remedy() {
        check("mapp(.a)", "there is no function mapp with 1 argument (line 1, column 1): did you mean map?");
        check("zyxw", "there is no function zyxw (line 1, column 1)");
        check(
            ".foo-bar",
            "there is no function bar (line 1, column 6): a key with a dash is written .\"a-key\"",
        );
        check(
            "select(.a; .b)",
            "there is no function select with 2 arguments (line 1, column 1): it takes another number of arguments, \
             which `;` separates",
        );
        check(
            ". | env",
            "there is no function env (line 1, column 5): a filter sees only its input, no environment variables",
        );
        check("jq .a", "there is no function jq (line 1, column 1): write the filter alone");
        check("$x", "there is no variable $x (line 1, column 1)");
    }
}
