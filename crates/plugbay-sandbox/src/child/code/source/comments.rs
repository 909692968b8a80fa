//! HTML comments: the engine accepts them, but the module parser does not.

use oxc_ast::ast::{Program, RegExpLiteral, StringLiteral, TemplateElement};
use oxc_ast_visit::Visit;
use oxc_span::Span;

const BEGIN: &str = "<!--";

/// The start of an HTML comment, unless it is inside a string, a regular expression or a comment. The parser
/// itself reports `-->` as an error.
pub(super) fn html_comment(program: &Program<'_>, code: &str) -> Option<usize> {
    if !code.contains(BEGIN) {
        return None;
    }
    let mut harmless = Harmless(program.comments.iter().map(|comment| comment.span).collect());
    harmless.0.extend(program.hashbang.as_ref().map(|hashbang| hashbang.span));
    harmless.visit_program(program);
    let is_harmless = |at: usize| {
        harmless.0.iter().any(|span| (span.start as usize) < at && at + BEGIN.len() <= span.end as usize)
    };
    code.match_indices(BEGIN).map(|(at, _)| at).find(|at| !is_harmless(*at))
}

/// Parts that are not code.
struct Harmless(Vec<Span>);

impl<'a> Visit<'a> for Harmless {
    fn visit_string_literal(&mut self, literal: &StringLiteral<'a>) {
        self.0.push(literal.span);
    }

    fn visit_template_element(&mut self, element: &TemplateElement<'a>) {
        // The span does not include the mark before the text, and `<!--` may follow that directly.
        self.0.push(Span::new(element.span.start.saturating_sub(1), element.span.end));
    }

    fn visit_reg_exp_literal(&mut self, literal: &RegExpLiteral<'a>) {
        self.0.push(literal.span);
    }
}
