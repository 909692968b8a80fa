//! A walk over JSON that has been read before: every byte once, whatever is looked for.
//!
//! Where it is not JSON after all, the walk is at its end.

pub(super) struct Walk<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(json: &'a [u8]) -> Self {
        Self { json, at: 0 }
    }

    /// Calls `member` with each key, as it is written; the value is to be taken or left.
    pub(super) fn object(&mut self, mut member: impl FnMut(&mut Self, &'a [u8])) {
        if !self.enter(b'{') {
            return self.skip();
        }
        while self.peek() == Some(b'"') {
            let key = self.string();
            self.enter(b':');
            self.value(|walk| member(walk, key));
            self.enter(b',');
        }
        self.leave(b'}');
    }

    pub(super) fn array(&mut self, mut element: impl FnMut(&mut Self)) {
        if !self.enter(b'[') {
            return self.skip();
        }
        while self.peek().is_some_and(|byte| byte != b']') {
            self.value(&mut element);
            self.enter(b',');
        }
        self.leave(b']');
    }

    /// A string with its quotes; nothing if something else stands here, which is passed over.
    pub(super) fn string(&mut self) -> &'a [u8] {
        if self.peek() != Some(b'"') {
            self.skip();
            return &[];
        }
        let start = self.at;
        self.at += 1;
        while let Some(found) = memchr::memchr2(b'"', b'\\', &self.json[self.at..]) {
            self.at += found;
            if self.json[self.at] == b'"' {
                self.at += 1;
                return &self.json[start..self.at];
            }
            self.at = (self.at + 2).min(self.json.len());
        }
        self.at = self.json.len();
        &[]
    }

    /// Passes over a value.
    pub(super) fn skip(&mut self) {
        let mut open = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string();
                }
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                b'}' | b']' => return,
                b',' | b':' => {
                    self.at += 1;
                    continue;
                }
                _ => self.word(),
            }
            if open == 0 {
                return;
            }
        }
    }

    /// A number, or one of the three words.
    fn word(&mut self) {
        let rest = &self.json[self.at..];
        let end = |byte: &u8| {
            matches!(byte, b',' | b'}' | b']' | b':' | b'"' | b'{' | b'[') || byte.is_ascii_whitespace()
        };
        self.at += rest.iter().position(end).unwrap_or(rest.len()).max(1);
    }

    /// Whatever is done with a value, the walk moves on.
    fn value(&mut self, take: impl FnOnce(&mut Self)) {
        let start = self.at;
        take(self);
        if self.at == start {
            self.at = self.json.len();
        }
    }

    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.json.get(self.at) {
            if !byte.is_ascii_whitespace() {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn enter(&mut self, wanted: u8) -> bool {
        let here = self.peek() == Some(wanted);
        self.at += usize::from(here);
        here
    }

    fn leave(&mut self, closing: u8) {
        if !self.enter(closing) {
            self.at = self.json.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(json: &str) -> Vec<String> {
        let mut keys = Vec::new();
        let mut walk = Walk::new(json.as_bytes());
        walk.object(|walk, key| {
            keys.push(String::from_utf8_lossy(key).into_owned());
            walk.skip();
        });
        keys
    }

    #[test]
    fn members_are_met_in_order_whatever_they_hold() {
        let json =
            r#" { "a" : [1,{"x":"]}\""},[]] ,"b\"":{}, "c":-1.5e3,"d":"\\","e":null , "f":{"g":[{}]}} "#;
        assert_eq!(keys(json), [r#""a""#, r#""b\"""#, r#""c""#, r#""d""#, r#""e""#, r#""f""#]);
        let mut strings = Vec::new();
        Walk::new(br#"["a",1,["b"],"c"]"#).array(|walk| strings.push(walk.string()));
        assert_eq!(strings, [&b"\"a\""[..], b"", b"", b"\"c\""]);
    }

    proptest! {
        #[test]
        fn a_walk_ends(json in r#"[\[\]{},:"\\a1 ]{0,40}"#) {
            keys(&json);
            Walk::new(json.as_bytes()).array(|walk| walk.object(|walk, _| walk.skip()));
        }
    }
}
