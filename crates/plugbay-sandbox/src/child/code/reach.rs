//! The tools that a script names literally.
//!
//! A script can reach `tools` only by its name or through `globalThis`: it is in strict mode, and cannot
//! compile text. So each use of these names is examined, even if the script has its own variable called
//! `tools`.

use oxc_ast::ast::{
    CallExpression, ComputedMemberExpression, Expression, IdentifierReference, Program,
    StaticMemberExpression,
};
use oxc_ast_visit::{Visit, walk};

use crate::code::Reach;

pub(super) fn of(program: &Program<'_>) -> Reach {
    let mut names = Names(Reach { tools: Vec::new(), is_complete: true });
    names.visit_program(program);
    names.0
}

struct Names(Reach);

impl Names {
    fn add(&mut self, server: String, tool: String) {
        let named = (server, tool);
        if !self.0.tools.contains(&named) {
            self.0.tools.push(named);
        }
    }

    /// Adds `object.name` if the object is `tools.server`.
    fn add_member(&mut self, object: &Expression<'_>, name: Option<String>) -> bool {
        let Some((server, name)) = of_tools(object).zip(name) else { return false };
        self.add(server, name);
        true
    }
}

impl<'a> Visit<'a> for Names {
    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        if !self.add_member(&it.object, Some(it.property.name.to_string())) {
            walk::walk_static_member_expression(self, it);
        }
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        if !self.add_member(&it.object, literal(&it.expression)) {
            walk::walk_computed_member_expression(self, it);
        }
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        match of_tools(&it.callee) {
            Some(tool) => self.add(String::new(), tool),
            None => self.visit_expression(&it.callee),
        }
        self.visit_arguments(&it.arguments);
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        if it.name == "tools" || it.name == "globalThis" {
            self.0.is_complete = false;
        }
    }
}

/// The name, if the expression is `tools.name`.
fn of_tools(expression: &Expression<'_>) -> Option<String> {
    let (object, name) = member(expression)?;
    let is_tools = matches!(bare(object), Expression::Identifier(it) if it.name == "tools");
    name.filter(|_| is_tools)
}

/// The object and the name of a member, if it is literal.
fn member<'e, 'a>(expression: &'e Expression<'a>) -> Option<(&'e Expression<'a>, Option<String>)> {
    match bare(expression) {
        Expression::StaticMemberExpression(it) => Some((&it.object, Some(it.property.name.to_string()))),
        Expression::ComputedMemberExpression(it) => Some((&it.object, literal(&it.expression))),
        _ => None,
    }
}

fn literal(expression: &Expression<'_>) -> Option<String> {
    match bare(expression) {
        Expression::StringLiteral(it) => Some(it.value.to_string()),
        Expression::TemplateLiteral(it) => it.single_quasi().map(|text| text.to_string()),
        _ => None,
    }
}

/// The expression without parentheses and types.
fn bare<'e, 'a>(expression: &'e Expression<'a>) -> &'e Expression<'a> {
    expression.get_inner_expression()
}
