//! Finds the TypeScript types in a script, to be blanked, and constructs that no script may use.
//!
//! If blanks would change the meaning of the rest, a `;` or a bracket replaces one of them.

use oxc_ast::{
    AstKind,
    ast::{
        ArrowFunctionExpression, Class, Decorator, ExportAllDeclaration, ExportDefaultDeclaration,
        ExportNamedDeclaration, Expression, FormalParameter, ImportDeclaration, ImportExpression,
        MetaProperty, MethodDefinition, PropertyDefinition, PropertyDefinitionType, TSAsExpression,
        TSEnumDeclaration, TSExportAssignment, TSGlobalDeclaration, TSImportEqualsDeclaration,
        TSIndexSignature, TSInterfaceDeclaration, TSModuleDeclaration, TSNonNullExpression,
        TSSatisfiesExpression, TSThisParameter, TSTypeAliasDeclaration, TSTypeAnnotation, TSTypeAssertion,
        TSTypeParameterDeclaration, TSTypeParameterInstantiation, VariableDeclaration, VariableDeclarator,
    },
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};

use super::edits::Edits;

const NO_MODULES: &str = "there are no modules here: remove `import` and `export`; `tools`, `input`, `results`, `search`, \
                          `describe` and `help` are there already";

/// Modifiers of class members that JavaScript lacks.
const MODIFIERS: [&str; 7] =
    ["public", "private", "protected", "readonly", "override", "abstract", "declare"];

#[derive(Debug)]
pub(super) struct Types<'t> {
    text: &'t str,
    edits: Edits,
    problem: Option<(String, usize)>,
}

impl<'t> Types<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, edits: Edits::default(), problem: None }
    }

    /// The edits, or the forbidden construct with its place.
    pub(super) fn finish(self) -> Result<Edits, (String, usize)> {
        self.problem.map_or(Ok(self.edits), Err)
    }

    fn refuse(&mut self, message: &str, span: Span) {
        self.problem.get_or_insert_with(|| (message.to_owned(), span.start as usize));
    }

    /// Blanks a whole statement or class member, and keeps the lines around it separate.
    fn blank_statement(&mut self, span: Span) {
        self.edits.blank(span);
        self.edits.replace(span.start as usize, ';');
    }

    fn between(&self, start: u32, end: u32) -> &'t str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Blanks the first such character in a range.
    fn blank_mark(&mut self, start: u32, end: u32, mark: char) {
        if let Some(at) = self.between(start, end).find(mark) {
            let at = start as usize + at;
            self.edits.blank_range(at, at + 1);
        }
    }

    /// Blanks `as T` and the like after an expression.
    fn blank_behind(&mut self, expression: &Expression<'_>, span: Span) {
        let start = expression.span().end;
        self.edits.blank_range(start as usize, span.end as usize);
        // If the next line begins like a call or an index, it would continue the expression.
        let rest = self.text.get(span.end as usize..).unwrap_or_default();
        let next = rest.trim_start();
        if rest[..rest.len() - next.len()].contains('\n') && next.starts_with(['(', '[', '`']) {
            self.edits.replace(span.end as usize - 1, ';');
        }
    }

    /// Blanks the modifiers of a class member.
    fn blank_modifiers(&mut self, member: Span, key: Span) {
        let head = self.between(member.start, key.start);
        let mut at = 0;
        while let Some(start) = head[at..].find(|char: char| char.is_ascii_alphabetic()) {
            let start = at + start;
            let length = head[start..].find(|char: char| !char.is_ascii_alphabetic());
            let end = length.map_or(head.len(), |length| start + length);
            if MODIFIERS.contains(&&head[start..end]) {
                let offset = member.start as usize;
                self.edits.blank_range(offset + start, offset + end);
                if start == 0 {
                    self.edits.replace(offset, ';');
                }
            }
            at = end;
        }
    }

    /// Moves the bracket to the end of a multi-line return type, which would otherwise separate the
    /// parameters from `=>`.
    fn keep_arrow(&mut self, it: &ArrowFunctionExpression<'_>) {
        if let Some(types) = &it.type_parameters
            && it.r#async
            && self.between(it.span.start, it.params.span.start).contains('\n')
        {
            self.edits.replace(types.span.start as usize, '(');
            self.edits.replace(it.params.span.start as usize, ' ');
        }
        let Some(types) = &it.return_type else { return };
        if self.between(it.params.span.end, it.body.span.start).contains('\n') {
            self.edits.replace(it.params.span.end as usize - 1, ' ');
            self.edits.replace(types.span.end as usize - 1, ')');
        }
    }
}

impl<'a> Visit<'a> for Types<'_> {
    fn enter_node(&mut self, kind: AstKind<'a>) {
        // Members are blanked as a whole, including their modifiers.
        if let AstKind::Function(function) = kind
            && function.is_declaration()
            && function.is_typescript_syntax()
        {
            self.blank_statement(function.span);
        }
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.edits.blank(it.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.edits.blank(it.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.edits.blank(it.span);
    }

    fn visit_ts_type_alias_declaration(&mut self, it: &TSTypeAliasDeclaration<'a>) {
        self.blank_statement(it.span);
    }

    fn visit_ts_interface_declaration(&mut self, it: &TSInterfaceDeclaration<'a>) {
        self.blank_statement(it.span);
    }

    fn visit_ts_global_declaration(&mut self, it: &TSGlobalDeclaration<'a>) {
        self.blank_statement(it.span);
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        if it.declare {
            return self.blank_statement(it.span);
        }
        self.refuse(
            "enums are not supported: write a constant object, `const Color = { Red: \"red\" }`",
            it.span,
        );
    }

    fn visit_ts_module_declaration(&mut self, it: &TSModuleDeclaration<'a>) {
        if it.declare {
            return self.blank_statement(it.span);
        }
        self.refuse("namespaces are not supported: write plain functions and constants", it.span);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        if it.declare {
            return self.blank_statement(it.span);
        }
        walk::walk_variable_declaration(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            let end = it.type_annotation.as_ref().map_or(it.span.end, |types| types.span.start);
            self.blank_mark(it.id.span().end, end, '!');
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            self.refuse(
                "parameter properties are not supported: assign `this.name = name` in the constructor",
                it.span,
            );
        }
        if it.optional {
            let end = it.type_annotation.as_ref().map_or(it.span.end, |types| types.span.start);
            self.blank_mark(it.pattern.span().end, end, '?');
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.edits.blank(it.span);
        let rest = self.text.get(it.span.end as usize..).unwrap_or_default();
        if rest.trim_start().starts_with(',') {
            let comma = it.span.end as usize + rest.len() - rest.trim_start().len();
            self.edits.blank_range(comma, comma + 1);
        }
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.keep_arrow(it);
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if it.declare {
            return self.blank_statement(it.span);
        }
        if it.r#abstract {
            let start = it.span.start as usize;
            self.edits.blank_range(start, start + "abstract".len());
        }
        if let (Some(first), Some(last)) = (it.implements.first(), it.implements.last()) {
            let keyword = self.between(it.span.start, first.span.start).rfind("implements");
            let start = keyword.map_or(first.span.start as usize, |at| it.span.start as usize + at);
            self.edits.blank_range(start, last.span.end as usize);
        }
        walk::walk_class(self, it);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        if it.value.body.is_none() {
            return self.blank_statement(it.span);
        }
        self.blank_modifiers(it.span, it.key.span());
        if it.optional {
            self.blank_mark(it.key.span().end, it.value.span.start + 1, '?');
        }
        walk::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition {
            return self.blank_statement(it.span);
        }
        self.blank_modifiers(it.span, it.key.span());
        if it.optional || it.definite {
            let mark = if it.optional { '?' } else { '!' };
            self.blank_mark(it.key.span().end, it.span.end, mark);
        }
        walk::walk_property_definition(self, it);
    }

    fn visit_ts_index_signature(&mut self, it: &TSIndexSignature<'a>) {
        self.blank_statement(it.span);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.blank_behind(&it.expression, it.span);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.blank_behind(&it.expression, it.span);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.edits.blank_range(it.span.start as usize, it.expression.span().start as usize);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.edits.blank_range(it.span.end as usize - 1, it.span.end as usize);
        self.visit_expression(&it.expression);
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.refuse("decorators are not supported: call the function directly", it.span);
    }

    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        if it.import_kind.is_type() {
            return self.blank_statement(it.span);
        }
        self.refuse(NO_MODULES, it.span);
    }

    fn visit_export_named_declaration(&mut self, it: &ExportNamedDeclaration<'a>) {
        // `export {}` only says that the file is a module.
        let is_empty = it.declaration.is_none() && it.specifiers.is_empty() && it.source.is_none();
        if it.export_kind.is_type() || is_empty {
            return self.blank_statement(it.span);
        }
        self.refuse(NO_MODULES, it.span);
    }

    fn visit_export_default_declaration(&mut self, it: &ExportDefaultDeclaration<'a>) {
        self.refuse(NO_MODULES, it.span);
    }

    fn visit_export_all_declaration(&mut self, it: &ExportAllDeclaration<'a>) {
        self.refuse(NO_MODULES, it.span);
    }

    fn visit_ts_export_assignment(&mut self, it: &TSExportAssignment<'a>) {
        self.refuse(NO_MODULES, it.span);
    }

    fn visit_ts_import_equals_declaration(&mut self, it: &TSImportEqualsDeclaration<'a>) {
        self.refuse(NO_MODULES, it.span);
    }

    fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
        self.refuse(NO_MODULES, it.span);
    }

    fn visit_meta_property(&mut self, it: &MetaProperty<'a>) {
        if it.meta.name == "import" {
            self.refuse(NO_MODULES, it.span);
        }
    }
}
