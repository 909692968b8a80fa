//! Colour, used for what should catch the eye and for what should not.

use anstream::{AutoStream, ColorChoice, stream::RawStream};
use anstyle::{AnsiColor, Effects};
use clap::ValueEnum;

/// Whether output is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Color {
    /// Where a terminal shows it.
    #[default]
    Auto,
    Always,
    Never,
}

/// The abilities of the reader's terminal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    pub colour: bool,
    /// Width in columns; `None` if lines may be of any length.
    pub width: Option<usize>,
}

impl Style {
    /// For tests, pipes and files.
    #[cfg(test)]
    pub const PLAIN: Self = Self { colour: false, width: None };

    /// For a stream of this process: `Auto` follows `NO_COLOR`, `CLICOLOR`, `TERM` and the stream.
    pub fn of(stream: &impl RawStream, choice: Color) -> Self {
        let size = stream.is_terminal().then(terminal_size::terminal_size).flatten();
        let colour = match choice {
            Color::Auto => AutoStream::choice(stream) != ColorChoice::Never,
            Color::Always => true,
            Color::Never => false,
        };
        Self { colour, width: size.map(|(width, _)| usize::from(width.0)) }
    }

    /// The same with this width, if given.
    #[must_use]
    pub fn within(self, columns: Option<usize>) -> Self {
        Self { width: columns.or(self.width), ..self }
    }

    pub fn bold(self, text: &str) -> String {
        self.paint(Effects::BOLD.into(), text)
    }

    pub fn dim(self, text: &str) -> String {
        self.paint(Effects::DIMMED.into(), text)
    }

    pub fn good(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    pub fn bad(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default() | Effects::BOLD, text)
    }

    pub fn warn(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    fn paint(self, look: anstyle::Style, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("{look}{text}{look:#}") } else { text.to_owned() }
    }
}

impl From<Color> for clap::ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}
