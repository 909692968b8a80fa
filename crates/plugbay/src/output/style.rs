//! Colour, used for what should catch the eye and for what should not.

use anstream::{AutoStream, ColorChoice, stream::RawStream};
use anstyle::{AnsiColor, Effects};

/// What the reader's terminal can show.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    pub colour: bool,
    /// Columns; `None` where lines may be as long as they are.
    pub width: Option<usize>,
}

impl Style {
    /// For tests, pipes and files.
    #[cfg(test)]
    pub const PLAIN: Self = Self { colour: false, width: None };

    /// For a stream of this process: colour as `NO_COLOR`, `CLICOLOR`, `TERM` and the stream allow.
    pub fn of(stream: &impl RawStream) -> Self {
        let size = stream.is_terminal().then(terminal_size::terminal_size).flatten();
        let colour = AutoStream::choice(stream) != ColorChoice::Never;
        Self { colour, width: size.map(|(width, _)| usize::from(width.0)) }
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
