//! The text that is compiled instead of the author's: types are blanked, and everything is put into a
//! function whose `return` gives the result. Lines and columns do not change.

mod comments;
mod edits;
mod types;

use oxc_allocator::Allocator;
use oxc_ast::ast::{Expression, Program, Statement};
use oxc_ast_visit::Visit;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_span::{GetSpan, SourceType};

use self::{edits::Edits, types::Types};
use super::reach as names;
use crate::code::Reach;

/// The name of the author's code in stacks.
pub(super) const FILE: &str = "script";

/// The text around the code. The first part is on its own line.
const BEFORE: &str = "(async function () {\n";
const AFTER: &str = "\n})";

/// A script that was parsed.
#[derive(Debug)]
pub(super) struct Source {
    /// An expression for an async function.
    pub(super) compiled: String,
    author: String,
    /// The place where `return` was inserted: line and column, and its width.
    moved: Option<(usize, usize, usize)>,
}

impl Source {
    /// Parses the code. `Err` says what is wrong, and where.
    pub(super) fn parse(code: &str) -> Result<Self, String> {
        let author = without_fences(code);
        if let Some(at) = author.find('\0') {
            return Err(complaint(&author, "the code contains a NUL character: write \\0", at));
        }
        let allocator = Allocator::default();
        let parsed = parsed(&allocator, &author)?;
        let mut types = Types::new(&author);
        types.visit_program(&parsed.program);
        let mut edits = types.finish().map_err(|(message, at)| complaint(&author, &message, at))?;
        if let Some(hashbang) = &parsed.program.hashbang {
            edits.blank(hashbang.span);
        }
        let moved = returned(&parsed.program, &mut edits).map(|(offset, width)| {
            let (line, column) = place(&author, offset);
            (line, column, width)
        });
        let compiled = [BEFORE, &edits.applied(&author), AFTER].concat();
        Ok(Self { compiled, author, moved })
    }

    /// A place in the compiled text, as a place in the author's code.
    pub(super) fn place(&self, line: usize, column: usize) -> Option<(usize, usize)> {
        let line = line.checked_sub(1).filter(|line| *line > 0)?;
        let column = match self.moved {
            Some((moved, from, width)) if moved == line && column > from => {
                column.saturating_sub(width).max(from)
            }
            _ => column,
        };
        Some((line, column))
    }

    /// A line of the author's code, for messages.
    pub(super) fn line(&self, line: usize) -> &str {
        self.author.lines().nth(line.saturating_sub(1)).unwrap_or_default()
    }

    /// A message about a place of the author's code, with its line.
    pub(super) fn complaint(&self, message: &str, line: usize, column: usize) -> String {
        shown(message, self.line(line), line, column)
    }
}

/// The tools that a script names.
pub(super) fn reach(code: &str) -> Result<Reach, String> {
    let author = without_fences(code);
    let allocator = Allocator::default();
    Ok(names::of(&parsed(&allocator, &author)?.program))
}

fn parsed<'a>(allocator: &'a Allocator, code: &'a str) -> Result<ParserReturn<'a>, String> {
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parse = |kind| Parser::new(allocator, code, kind).with_options(options).parse();
    // JavaScript that TypeScript would read differently (`a < b > (c)`) stays as it is.
    let script = parse(SourceType::mjs().with_jsx(false));
    if script.errors.is_empty() {
        return checked(script, code);
    }
    let typed = parse(SourceType::ts());
    let Some(error) = typed.errors.first() else { return checked(typed, code) };
    Err(match error.labels.iter().flatten().next() {
        Some(label) => complaint(code, &error.message, label.offset()),
        None => error.message.to_string(),
    })
}

/// Makes sure that the parser and the engine read the same: a comment for one of them may be code for the
/// other.
fn checked<'a>(parsed: ParserReturn<'a>, code: &str) -> Result<ParserReturn<'a>, String> {
    match comments::html_comment(&parsed.program, code) {
        Some(at) => Err(complaint(code, "`<!--` begins a comment in some engines: write `< !--`", at)),
        None => Ok(parsed),
    }
}

/// Inserts `return` before the expression at the end, and calls a function if the code is nothing else.
fn returned(program: &Program<'_>, edits: &mut Edits) -> Option<(usize, usize)> {
    let does_nothing = |statement: &&Statement<'_>| {
        matches!(statement, Statement::EmptyStatement(_) | Statement::FunctionDeclaration(_))
            || statement.is_typescript_syntax()
    };
    let mut statements = program.body.iter().filter(|statement| !does_nothing(statement));
    let Some(last) = statements.next_back() else {
        // To the parser, a string literal alone is a directive.
        let last = program.directives.last().filter(|_| program.body.is_empty())?;
        return Some(edits.insert(last.span.start, "return "));
    };
    let Statement::ExpressionStatement(last) = last else { return None };
    let is_function = matches!(
        last.expression.without_parentheses(),
        Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_)
    );
    if is_function && statements.next_back().is_none() && program.directives.is_empty() {
        edits.insert(last.expression.span().end, ")()");
        return Some(edits.insert(last.span.start, "return ("));
    }
    Some(edits.insert(last.span.start, "return "))
}

/// Blanks the fences of Markdown around the code.
fn without_fences(code: &str) -> String {
    let fenced = code.trim();
    let Some(inside) = fenced.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return code.to_owned();
    };
    // The rest of the first line names the language.
    let Some((language, inside)) = inside.split_once('\n') else { return code.to_owned() };
    if language.contains(|char: char| !char.is_alphanumeric() && char != '\r' && char != ' ') {
        return code.to_owned();
    }
    let lead = &code[..code.len() - code.trim_start().len()];
    [lead, &" ".repeat(3 + language.len()), "\n", inside].concat()
}

fn complaint(code: &str, message: &str, offset: usize) -> String {
    let (line, column) = place(code, offset);
    shown(message, code.lines().nth(line - 1).unwrap_or_default(), line, column)
}

/// Limit of a line that a message shows, in characters.
const SHOWN: usize = 160;

fn shown(message: &str, text: &str, line: usize, column: usize) -> String {
    let message = message.trim_end_matches('.');
    let place = format!("{message} (line {line}, column {column})");
    if text.trim().is_empty() || text.chars().count() > SHOWN || text.contains('\t') {
        let short: String = text.trim().chars().take(SHOWN).collect();
        return if short.is_empty() { place } else { format!("{place}\n{short}") };
    }
    format!("{place}\n{text}\n{}^", " ".repeat(column.saturating_sub(1)))
}

/// Line and column, counted as in an editor.
fn place(code: &str, offset: usize) -> (usize, usize) {
    let before = code.get(..offset).unwrap_or(code);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests;
