//! jq, implemented by jaq: compiles a filter with the functions that need nothing from outside, and runs it
//! on one value.

mod complaint;
mod functions;

use std::{
    fmt::{self, Write as _},
    io::Write,
};

use jaq_core::{
    Compiler, Ctx, Filter, Vars,
    data::JustLut,
    load::{self, Arena, File, Loader, parse::Def},
    native::Fun,
};
use jaq_json::{Val, read};

use super::{
    json::{self, Unwritten},
    output::{Output, Stop},
};
use crate::protocol::Failed;

type Data = JustLut<Val>;

/// Functions that jaq lacks, or that work in jaq otherwise than in jq.
const PRELUDE: &str = include_str!("jq/prelude.jq");

/// Limit of a message, in bytes. A filter's error may contain a value of any size.
const MESSAGE: usize = 500;

/// Everything that filters may call.
pub(super) struct Library {
    definitions: Vec<Def<&'static str>>,
    natives: Vec<Fun<Data>>,
}

impl Library {
    pub(super) fn load() -> Self {
        let definitions = all_definitions().filter(|def| functions::is_allowed(def.name));
        let natives = all_natives().filter(|(name, ..)| functions::is_allowed(name));
        // Ours come last: of two functions with the same name, the later one counts.
        let ours = load::parse(PRELUDE, |parser| parser.defs()).unwrap_or_default();
        Self { definitions: definitions.chain(ours).collect(), natives: natives.collect() }
    }

    /// Writes the values that the filter makes from the input.
    pub(super) fn run<W: Write>(
        self,
        filter: &str,
        input: &[u8],
        output: &mut Output<W>,
    ) -> Result<(), Failed> {
        let filter = self.compile(filter)?;
        let input = read::parse_single(input).map_err(|error| Failed::Input(error.to_string()))?;
        let context = Ctx::<Data>::new(&filter.lut, Vars::new([]));
        for value in filter.id.run((context, input)) {
            let value = value.map_err(|exception| match exception.get_err() {
                Ok(error) => Failed::Runtime(shortened(&error)),
                Err(_) => Failed::Runtime("the filter breaks out of a place that is not there".to_owned()),
            })?;
            match json::write(&value, output) {
                Ok(()) => {}
                Err(Unwritten::Stop(Stop::Counted | Stop::Io)) => break,
                Err(Unwritten::Failed(failed)) => return Err(failed),
            }
            // Dropping a deeply nested value would overflow the stack.
            std::mem::forget(value);
        }
        Ok(())
    }

    /// The filter, ready to run.
    pub(super) fn compile(self, code: &str) -> Result<Filter<Data>, Failed> {
        self.compiled(code).map_err(Failed::Filter)
    }

    fn compiled(self, code: &str) -> Result<Filter<Data>, String> {
        let natives = self.natives.iter().map(|(name, ..)| *name);
        let known: Vec<&str> = self.definitions.iter().map(|def| def.name).chain(natives).collect();
        let arena = Arena::default();
        let modules = Loader::new(self.definitions)
            .load(&arena, File { code, path: () })
            .map_err(|errors| complaint::of_loading(code, &errors))?;
        load::import(&modules, |_| Err(String::new()))
            .map_err(|errors| complaint::of_loading(code, &errors))?;
        Compiler::default()
            .with_funs(self.natives)
            .compile(modules)
            .map_err(|errors| complaint::of_compiling(code, &errors, &known))
    }
}

fn all_definitions() -> impl Iterator<Item = Def<&'static str>> {
    jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs())
}

fn all_natives() -> impl Iterator<Item = Fun<Data>> {
    jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs())
}

/// The beginning of a message; the rest is never produced.
fn shortened(message: &impl fmt::Display) -> String {
    let mut short = Short { text: String::new() };
    let is_whole = write!(short, "{message}").is_ok();
    // An error that is a string is shown as it is; jaq would show its JSON.
    if is_whole && let Ok(Val::TStr(text)) = read::parse_single(short.text.as_bytes()) {
        return String::from_utf8_lossy(&text).into_owned();
    }
    if !is_whole {
        short.text.push('…');
    }
    short.text
}

struct Short {
    text: String,
}

impl fmt::Write for Short {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let room = MESSAGE.saturating_sub(self.text.len());
        self.text.push_str(&piece[..piece.floor_char_boundary(room.min(piece.len()))]);
        if piece.len() > room { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prelude_parses() {
        assert!(load::parse(PRELUDE, |parser| parser.defs()).is_some_and(|defs| defs.len() > 10));
        assert_eq!(Library::load().compiled(".").err(), None, "and each of its functions is there");
    }

    /// A new version of jaq may have a function that reaches outside: somebody must have checked it.
    #[test]
    fn every_function_of_jaq_is_allowed_or_left_out_on_purpose() {
        let ours = load::parse(PRELUDE, |parser| parser.defs()).unwrap();
        let is_decided = |name: &&str| {
            functions::is_allowed(name)
                || functions::left_out(name).is_some()
                || ours.iter().any(|def| def.name == *name)
        };
        let names = all_definitions().map(|def| def.name).chain(all_natives().map(|(name, ..)| name));
        assert_eq!(names.filter(|name| !is_decided(name)).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn a_message_ends_where_it_becomes_long() {
        let long = "ä".repeat(MESSAGE);
        let text = shortened(&long);
        assert!(text.ends_with("ä…") && text.len() <= MESSAGE + 3, "{text}");
        assert_eq!(shortened(&"cannot index"), "cannot index");
        assert_eq!(shortened(&r#""say \"x\"""#), "say \"x\"");
    }
}
