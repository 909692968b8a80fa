//! The arguments of a call, checked by name and read by type.

use serde_json::{Map, Value};

pub(super) struct Arguments<'a>(Option<&'a Map<String, Value>>);

impl<'a> Arguments<'a> {
    /// Nothing that the tool does not know, everything that it needs. Types are checked when read.
    pub(super) fn check(given: &'a Value, properties: &Value, required: &[&str]) -> Result<Self, String> {
        if !given.is_object() && !given.is_null() {
            return Err("\"arguments\" must be an object".to_owned());
        }
        let given = given.as_object();
        let known: Vec<&str> =
            properties.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let odd = given.into_iter().flat_map(Map::keys).find(|key| !known.contains(&key.as_str()));
        if let Some(odd) = odd {
            let known: Vec<String> = known.iter().map(|key| format!("\"{key}\"")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("\"{odd}\" is not an argument; there is {known}"));
        }
        let missing = required.iter().find(|key| !given.is_some_and(|given| given.contains_key(**key)));
        match missing {
            Some(missing) => Err(format!("\"{missing}\" is missing")),
            None => Ok(Self(given)),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn text(&self, key: &str) -> Result<&'a str, String> {
        self.get(key).and_then(Value::as_str).ok_or_else(|| format!("\"{key}\" must be a string"))
    }

    pub(super) fn text_or(&self, key: &str, absent: &'a str) -> Result<&'a str, String> {
        if self.has(key) { self.text(key) } else { Ok(absent) }
    }

    pub(super) fn number(&self, key: &str) -> Result<f64, String> {
        self.get(key).and_then(Value::as_f64).ok_or_else(|| format!("\"{key}\" must be a number"))
    }

    pub(super) fn integer(&self, key: &str) -> Result<i64, String> {
        self.get(key).and_then(Value::as_i64).ok_or_else(|| format!("\"{key}\" must be an integer"))
    }

    pub(super) fn numbers(&self, key: &str) -> Result<Vec<f64>, String> {
        let array = self.get(key).and_then(Value::as_array);
        let numbers: Option<Vec<f64>> = array.and_then(|array| array.iter().map(Value::as_f64).collect());
        numbers
            .filter(|numbers| !numbers.is_empty())
            .ok_or_else(|| format!("\"{key}\" must be an array of numbers"))
    }

    /// Absent: none.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let texts = value.as_array().and_then(|array| {
            array.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        texts.ok_or_else(|| format!("\"{key}\" must be an array of strings"))
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.0?.get(key)
    }
}
