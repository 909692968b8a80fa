//! Translates variables from a host's own form into `${VAR}` and `${VAR:-default}`.

use crate::known::{Form, Host};

/// Translates the strings of one entry, and collects notes for the user.
pub(super) struct Translator<'a> {
    pub(super) host: Option<&'a Host>,
    /// The inputs described in the file: id and description.
    pub(super) inputs: Vec<(String, String)>,
    pub(super) notes: Vec<String>,
}

impl Translator<'_> {
    /// The text with every variable in plugbay's form.
    pub(super) fn translate(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            rest = self.reference(rest, &mut out);
        }
        out.push_str(rest);
        out
    }

    /// Translates the reference at the start of `rest`, which begins with `$` or `{`; returns the text after
    /// it.
    fn reference<'t>(&mut self, rest: &'t str, out: &mut String) -> &'t str {
        if let Some((body, after)) = braced(rest, "${") {
            out.push_str(&self.in_braces(body));
            return after;
        }
        if let Some((body, after)) = self.curly(rest) {
            out.push_str(&self.in_curly(body));
            return after;
        }
        if let Some(name) = self.bare(rest) {
            out.push_str(&reference(name));
            return &rest[1 + name.len()..];
        }
        out.push_str(&rest[..1]);
        &rest[1..]
    }

    /// `{env:VAR}` in plugbay's form.
    fn in_curly(&mut self, body: &str) -> String {
        if let Some(name) = body.strip_prefix("env:").filter(|name| is_name(name)) {
            return reference(name);
        }
        self.note(format!("`{{{body}}}` has no counterpart in plugbay; write its value instead"));
        format!("{{{body}}}")
    }

    /// `${BODY}` in plugbay's form.
    fn in_braces(&mut self, body: &str) -> String {
        if let Some(variable) =
            body.strip_prefix("env:").filter(|variable| is_name(without_default(variable)))
        {
            return self.variable(variable, Form::Env);
        }
        if let Some(id) = body.strip_prefix("input:").or_else(|| body.strip_prefix("promptString:")) {
            return self.input(id);
        }
        match body {
            "userHome" => "${HOME}".to_owned(),
            // plugbay itself supports these.
            "workspaceFolder" | "CLAUDE_PLUGIN_ROOT" => format!("${{{body}}}"),
            _ => {
                let name = without_default(body);
                let form = if name.len() == body.len() { Form::Braces } else { Form::Default };
                if is_name(name) {
                    return self.variable(body, form);
                }
                self.note(format!("`${{{body}}}` has no counterpart in plugbay; write its value instead"));
                format!("${{{body}}}")
            }
        }
    }

    fn variable(&mut self, body: &str, form: Form) -> String {
        let written = if form == Form::Env { format!("${{env:{body}}}") } else { format!("${{{body}}}") };
        if let Some(host) = self.host.filter(|host| !is_expanded_by(host, form)) {
            self.note(format!("{} passes `{written}` on as it is; plugbay expands it", host.name));
        }
        reference(body)
    }

    fn input(&mut self, id: &str) -> String {
        let name = capitals(id);
        let described = self.inputs.iter().find(|(known, _)| known == id).map(|(_, text)| text.clone());
        let described =
            described.filter(|text| !text.is_empty()).map(|text| format!(" ({text})")).unwrap_or_default();
        self.note(format!("the host asks for the input `{id}`{described}; set the variable {name} instead"));
        reference(&name)
    }

    /// `{env:VAR}` and `{file:PATH}`, if the host supports them.
    fn curly<'t>(&self, rest: &'t str) -> Option<(&'t str, &'t str)> {
        self.host.filter(|host| host.expands(Form::CurlyEnv))?;
        let (body, after) = braced(rest, "{")?;
        let (kind, _) = body.split_once(':')?;
        matches!(kind, "env" | "file").then_some((body, after))
    }

    /// The name in `$VAR`, if the host supports that form.
    fn bare<'t>(&self, rest: &'t str) -> Option<&'t str> {
        self.host.filter(|host| host.expands(Form::Bare))?;
        let after = rest.strip_prefix('$')?;
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
        Some(&after[..end]).filter(|name| is_name(name))
    }

    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Whether the host expands the form. If it supports `${VAR}`, a default is not worth a note.
fn is_expanded_by(host: &Host, form: Form) -> bool {
    host.expands(form) || (form == Form::Default && host.expands(Form::Braces))
}

/// The variable in plugbay's form.
fn reference(name: &str) -> String {
    format!("${{{name}}}")
}

/// The text between `open` at the start and the next `}`, and the text after it.
fn braced<'t>(text: &'t str, open: &str) -> Option<(&'t str, &'t str)> {
    text.strip_prefix(open)?.split_once('}')
}

/// The name of `NAME:-default`.
fn without_default(variable: &str) -> &str {
    variable.split_once(":-").map_or(variable, |(name, _)| name)
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// An input's id as the name of a variable: `github-token` → `GITHUB_TOKEN`.
fn capitals(id: &str) -> String {
    let name: String =
        id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if is_name(&name) { name } else { format!("INPUT_{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known;

    fn translated(host: &str, text: &str) -> (String, Vec<String>) {
        let inputs = vec![("gh-token".to_owned(), "GitHub token".to_owned())];
        let mut translator = Translator { host: known::by_id(host), inputs, notes: Vec::new() };
        let text = translator.translate(text);
        (text, translator.notes)
    }

    #[test]
    fn variables_of_every_host_become_one_form() {
        for (host, text, expected) in [
            ("claude-code", "Bearer ${TOK}", "Bearer ${TOK}"),
            ("claude-code", "${TOK:-none}", "${TOK:-none}"),
            ("cursor", "${env:TOK}/x", "${TOK}/x"),
            ("opencode", "Bearer {env:TOK}", "Bearer ${TOK}"),
            ("gemini-cli", "Bearer $TOK-x", "Bearer ${TOK}-x"),
            ("vscode", "${userHome}/${workspaceFolder}", "${HOME}/${workspaceFolder}"),
        ] {
            assert_eq!(translated(host, text), (expected.to_owned(), Vec::new()), "{host}");
        }
    }

    #[test]
    fn text_that_is_no_variable_of_the_host_stays() {
        for (host, text) in [
            ("cursor", "$TOK {env:TOK} {a} $"),
            ("gemini-cli", "$ $1 {env:TOK} ${"),
            ("opencode", "{\"a\":{}}"),
        ] {
            assert_eq!(translated(host, text), (text.to_owned(), Vec::new()), "{host}");
        }
    }

    #[test]
    fn an_input_becomes_a_variable_with_a_note() {
        let (text, notes) = translated("vscode", "${input:gh-token} ${input:gh-token} ${input:1}");
        assert_eq!(text, "${GH_TOKEN} ${GH_TOKEN} ${INPUT_1}");
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("GitHub token") && notes[0].contains("GH_TOKEN"), "{notes:?}");
    }

    #[test]
    fn a_variable_that_the_host_does_not_expand_gets_a_note() {
        let (text, notes) = translated("codex", "${TOK}");
        assert_eq!(text, "${TOK}");
        assert!(notes[0].contains("Codex"), "{notes:?}");
    }

    #[test]
    fn a_form_without_counterpart_stays_with_a_note() {
        for (host, text) in [
            ("vscode", "${fileBasename:x y}"),
            ("opencode", "{file:~/.token}"),
            // In plugbay's form these would mean something else.
            ("cursor", "${env:input:x}"),
            ("opencode", "{env:env:x}"),
        ] {
            let (same, notes) = translated(host, text);
            assert_eq!((same.as_str(), notes.len()), (text, 1), "{notes:?}");
        }
    }
}
