//! The keys of a result that name fields and may be remembered. Others may be data: names, addresses, ids.

use super::{Key, Object, Shape, are_alike};

/// An object with at least this many members whose values are alike is a map.
const MANY: usize = 12;
/// The same if the values are objects with the same keys.
const FEW: usize = 3;
/// Characters of a field's name, and of one word in it.
const NAME: usize = 40;
const WORD: usize = 20;
/// How many digits in a row a field's name may have: `sha256`.
const DIGITS: usize = 3;
/// This many letters and digits that could all be hexadecimal are an id.
const HEX: usize = 8;

impl Shape {
    /// The shape of a result as it may be remembered: an object whose keys may be data is a map, or loses those keys. Each
    /// key counts as seen once; `None` if the bytes are no JSON.
    pub fn of_fields(json: &[u8]) -> Option<Self> {
        let mut shape = Self::of(json)?;
        shape.keep_fields(false);
        Some(shape)
    }

    /// The shape with only those keys that two of the merged shapes have. A key that came once may be data in
    /// spite of its form.
    #[must_use]
    pub fn confirmed(mut self) -> Self {
        if let Some(item) = self.array {
            self.array = Some(Box::new(item.confirmed()));
        }
        self.object = self.object.map(|object| match object {
            Object::Map(value) => Object::Map(Box::new(value.confirmed())),
            Object::Keys { keys, more } => {
                let count = keys.len();
                let keys = keys.into_iter().filter(|key| !key.once);
                let keys: Vec<Key> = keys.map(|key| Key { shape: key.shape.confirmed(), ..key }).collect();
                Object::Keys { more: more || keys.len() < count, keys }
            }
        });
        self
    }

    /// Whether it has parts that a filter can name: a key, or elements.
    pub fn has_parts(&self) -> bool {
        let has_keys = match &self.object {
            Some(Object::Keys { keys, .. }) => !keys.is_empty(),
            Some(Object::Map(value)) => value.has_parts(),
            None => false,
        };
        has_keys || self.array.as_ref().is_some_and(|item| !item.is_unknown() && !item.is_closed())
    }

    /// Whether it is an object of which no key is known.
    fn is_closed(&self) -> bool {
        self.object.is_some() && !self.has_parts()
    }

    fn keep_fields(&mut self, is_element: bool) {
        if let Some(item) = &mut self.array {
            item.keep_fields(true);
        }
        self.object = self.object.take().map(|object| match object {
            Object::Map(mut value) => {
                value.keep_fields(false);
                Object::Map(value)
            }
            Object::Keys { mut keys, more } => {
                for key in &mut keys {
                    key.shape.keep_fields(false);
                    key.once = true;
                }
                fields_of(keys, more, is_element)
            }
        });
    }
}

/// The members of one object, or of all elements of an array.
fn fields_of(mut keys: Vec<Key>, more: bool, is_element: bool) -> Object {
    let count = keys.len();
    let is_record = is_element && keys.iter().all(|key| !key.optional);
    let are_fields = keys.iter().all(|key| is_field(&key.name));
    let is_map = !are_fields || count >= MANY && !is_record || count >= FEW && have_same_keys(&keys);
    if is_map && are_alike(&keys) {
        return Object::Map(Box::new(Object::Keys { keys, more }.value()));
    }
    keys.retain(|key| is_field(&key.name));
    Object::Keys { more: more || keys.len() < count, keys }
}

/// Whether all values are objects with the same keys, as those of a map by id are.
fn have_same_keys(keys: &[Key]) -> bool {
    let names = |key: &Key| match &key.shape.object {
        Some(Object::Keys { keys, .. }) if !keys.is_empty() => {
            Some(keys.iter().map(|key| key.name.clone()).collect::<Vec<_>>())
        }
        _ => None,
    };
    let first = keys.first().and_then(names);
    first.is_some() && keys.iter().all(|key| names(key) == first)
}

/// Whether a key looks like the name of a field: short ASCII words, and no address, path, number or id.
fn is_field(key: &str) -> bool {
    let bytes = key.as_bytes();
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let begins = bytes.first().is_some_and(|first| first.is_ascii_alphabetic() || b"_$@".contains(first));
    let words = || key.split(['_', '-', '$', '@']);
    begins
        && bytes.len() <= NAME
        && bytes[1..].iter().all(is_letter)
        && words().all(|word| longest_part(word) <= WORD && !is_id(word))
}

/// The longest part of a word in camel case.
fn longest_part(word: &str) -> usize {
    word.split(|char: char| char.is_ascii_uppercase()).map(str::len).max().unwrap_or(0)
}

/// Whether a word looks like an id: a number, many digits, hexadecimal digits, or letters and digits in turn.
fn is_id(word: &str) -> bool {
    let digits = |part: &str| part.bytes().filter(u8::is_ascii_digit).count();
    let is_number = !word.is_empty() && digits(word) == word.len();
    let is_hex = word.len() >= HEX && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let runs = word.split(|char: char| !char.is_ascii_digit()).filter(|run| !run.is_empty());
    let humps =
        word.as_bytes().windows(2).filter(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
    is_number && word.len() > 1 || is_hex || digits(word) > DIGITS || runs.count() > 1 || humps.count() > 5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> Shape {
        Shape::of_fields(json.as_bytes()).unwrap()
    }

    #[track_caller]
    fn check(json: &str, line: &str) {
        assert_eq!(fields(json).to_string(), line);
    }

    #[test]
    fn keys_that_may_be_data_are_not_kept() {
        check(r#"{"alice@example.org": {"role": "x"}}"#, "{[key]: {role}}");
        check(r#"{"alice@example.org": {"role": "x"}, "total": 2}"#, "{total: int, …}");
        check(r#"{"alice": {"role": "x"}, "bob": {"role": "y"}, "carol": {"role": "z"}}"#, "{[key]: {role}}");
        check(r#"{"/etc/passwd": 1, "b": 2}"#, "{[key]: int}");
        check(r#"[{"deadbeef01": 1}, {"id": 2}]"#, "{[key]: int}[]");
        let ages: Vec<String> = "abcdefghijklm".chars().map(|name| format!("\"{name}x\": 1")).collect();
        check(&format!("{{{}}}", ages.join(",")), "{[key]: int}");
        let long = format!(r#"{{"{}": 1}}"#, "x".repeat(99));
        check(&long, "{[key]: int}");
    }

    #[test]
    fn names_of_fields_are_kept() {
        for name in [
            "id",
            "fullName",
            "created_at",
            "sha256",
            "x1",
            "_links",
            "$ref",
            "@type",
            "content-type",
            "isIPv4",
        ] {
            assert!(is_field(name), "{name}");
        }
        for data in [
            "",
            "a b",
            "a@b.c",
            "2025-01-02",
            "PROJ-123",
            "user12345",
            "i-0abc12de",
            "0",
            "a.b",
            "a/b",
            "größe",
            "b3JkZXItMTIzNDU2",
            "cafebabe",
            "a1b2c3",
            "AkIaXyQzRtUvWbNm",
            "0x1f",
        ] {
            assert!(!is_field(data), "{data}");
        }
        let columns: Vec<String> = ('a'..='n').map(|name| format!("\"{name}_x\": \"v\"")).collect();
        let row = format!("{{{}}}", columns.join(","));
        assert!(fields(&format!("[{row},{row}]")).to_string().starts_with("{a_x, b_x"), "columns of a table");
    }

    #[test]
    fn a_key_is_confirmed_by_a_second_result() {
        let first = fields(r#"{"items": [{"id": 1, "alice": 2}, {"id": 2, "alice": 3}], "once": 1}"#);
        assert_eq!(first.clone().confirmed().to_string(), "{…}");
        assert!(!first.clone().confirmed().has_parts());
        let both = first.merge(fields(r#"{"items": [{"id": 1.5, "title": "x"}], "next": null}"#));
        assert_eq!(both.clone().confirmed().to_string(), "{items: {id: number, …}[], …}");
        assert!(both.clone().confirmed().has_parts());
        let third = both.merge(fields(r#"{"items": [{"id": 2, "title": "y"}]}"#)).confirmed();
        assert_eq!(third.to_string(), "{items: {id: number, title?, …}[], …}");
    }

    #[test]
    fn objects_without_a_common_key_become_a_map() {
        let both = fields(r#"{"alice": {"n": 1}}"#).merge(fields(r#"{"bob": {"n": 2}}"#));
        assert_eq!(both.confirmed().to_string(), "{[key]: {…}}");
    }
}
