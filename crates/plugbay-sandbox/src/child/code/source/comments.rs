//! HTML comments: the engine knows them, the parser of modules does not.

use oxc_ast::ast::{Program, RegExpLiteral, StringLiteral, TemplateElement};
use oxc_ast_visit::Visit;
use oxc_span::Span;

const BEGIN: &str = "<!--";

/// Where an HTML comment begins, unless it stands in a text, a regular expression or a comment. `-->` is an error of the
/// parser's own.
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

/// Where code is no code.
struct Harmless(Vec<Span>);

impl<'a> Visit<'a> for Harmless {
    fn visit_string_literal(&mut self, literal: &StringLiteral<'a>) {
        self.0.push(literal.span);
    }

    fn visit_template_element(&mut self, element: &TemplateElement<'a>) {
        // Without the marks around it, which may begin the comment.
        self.0.push(Span::new(element.span.start.saturating_sub(1), element.span.end));
    }

    fn visit_reg_exp_literal(&mut self, literal: &RegExpLiteral<'a>) {
        self.0.push(literal.span);
    }
}
