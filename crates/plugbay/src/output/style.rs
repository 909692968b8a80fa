//! Colour, used for what should catch the eye and for what should not.

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

    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    pub fn warn(self, text: &str) -> String {
        self.paint("33", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
