//! Formats JSON for reading without changing it: keys keep their order and numbers their digits.

use super::clean_line;

/// Formats a value. `json` must be one valid value.
pub(super) fn pretty(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut chars = json.chars().filter(|char| !char.is_control()).peekable();
    while let Some(char) = chars.next() {
        if in_string {
            text.push(char);
            in_string = char != '"' || escaped;
            escaped = char == '\\' && !escaped;
            continue;
        }
        match char {
            ' ' => {}
            '"' => {
                in_string = true;
                text.push(char);
            }
            '{' | '[' => {
                text.push(char);
                while chars.next_if_eq(&' ').is_some() {}
                let closing = if char == '{' { '}' } else { ']' };
                if chars.next_if_eq(&closing).is_some() {
                    text.push(closing);
                } else {
                    depth += 1;
                    new_line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut text, depth);
                text.push(char);
            }
            ',' => {
                text.push(char);
                new_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => text.push(char),
        }
    }
    text.lines().map(clean_line).collect::<Vec<_>>().join("\n")
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_and_digits() {
        let json = "{\"z\": 12345678901234567890123.50,\n \"a\":[ ],\"o\":{},\"s\":\"x\\\"{, }\\\\\",\"l\":[1,{\"b\":null}]}";
        let expected = "{\n  \"z\": 12345678901234567890123.50,\n  \"a\": [],\n  \"o\": {},\n  \
            \"s\": \"x\\\"{, }\\\\\",\n  \"l\": [\n    1,\n    {\n      \"b\": null\n    }\n  ]\n}";
        assert_eq!(pretty(json), expected);
    }

    #[test]
    fn is_safe_to_show() {
        assert_eq!(pretty("{\"a\":\"\u{202e}x\u{9b}2J\"}"), "{\n  \"a\": \"\\u{202e}x2J\"\n}");
    }
}
