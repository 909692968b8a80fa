//! Any number of tools, as long and as varied as those of real servers; always the same for the same server.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// The tool that makes the server list one more tool.
pub(crate) const CHANGE_TOOL: &str = "change_list";

const VERBS: [&str; 24] = [
    "get", "list", "create", "update", "delete", "search", "read", "write", "send", "move", "copy", "rename",
    "export", "import", "run", "stop", "watch", "merge", "validate", "convert", "archive", "restore",
    "assign", "query",
];
const NOUNS: [&str; 40] = [
    "file",
    "issue",
    "project",
    "user",
    "message",
    "channel",
    "branch",
    "commit",
    "document",
    "page",
    "table",
    "record",
    "query",
    "report",
    "invoice",
    "customer",
    "order",
    "product",
    "event",
    "calendar",
    "contact",
    "image",
    "video",
    "dataset",
    "model",
    "job",
    "workflow",
    "deployment",
    "container",
    "cluster",
    "metric",
    "alert",
    "dashboard",
    "ticket",
    "comment",
    "review",
    "release",
    "secret",
    "webhook",
    "session",
];
const LITTLE: [&str; 16] = [
    "the", "a", "of", "to", "with", "for", "in", "and", "or", "by", "from", "if", "that", "is", "as", "when",
];
const SYLLABLES: [&str; 20] = [
    "ta", "ri", "mo", "nel", "sor", "vi", "pra", "kel", "dan", "lu", "ben", "fos", "gra", "hin", "jo",
    "quen", "sti", "wal", "xe", "zor",
];
/// Number of further words; most of them are in few tools.
const RARE: u64 = 12_000;

/// The definitions of a server's tools. `more` counts the changes of its list so far.
pub(super) fn list(server: u64, count: usize, more: usize) -> Value {
    let tools = (0..count.saturating_sub(1) as u64).map(|number| tool(server, number));
    let change = json!({
        "name": CHANGE_TOOL,
        "description": "Adds one tool to the list of this server.",
        "inputSchema": { "type": "object" },
    });
    let added = (1..=more).map(|number| {
        json!({
            "name": added(server, number),
            "description": "A tool that was not there when the server started.",
            "inputSchema": { "type": "object" },
        })
    });
    tools.chain([change]).chain(added).collect()
}

/// The name of the tool that a change adds. No other tool contains its words.
pub(crate) fn added(server: u64, number: usize) -> String {
    format!("addendum{server}x{number}")
}

fn tool(server: u64, number: u64) -> Value {
    let mut dice = Dice(server * 1_000_003 + number * 7919 + 17);
    let name = format!("{}_{}_{}{number}", dice.of(&VERBS), dice.of(&NOUNS), dice.rare());
    let sentences = 2 + dice.below(4);
    let description: Vec<String> = (0..sentences).map(|_| sentence(&mut dice, 14)).collect();
    let mut properties = Map::new();
    for _ in 0..3 + dice.below(7) {
        let key =
            format!("{}_{}", dice.of(&NOUNS), dice.of(&["id", "name", "path", "type", "limit", "filter"]));
        let words = 8 + dice.below(8);
        let about = sentence(&mut dice, words);
        let schema = match dice.below(5) {
            0 => json!({ "type": "integer", "minimum": 0, "default": 10, "description": about }),
            1 => json!({ "type": "boolean", "default": false, "description": about }),
            2 => json!({ "type": "array", "items": { "type": "string" }, "description": about }),
            3 => {
                json!({ "type": "string", "enum": [dice.rare(), dice.rare(), dice.rare()], "description": about })
            }
            _ => json!({ "type": "string", "description": about }),
        };
        properties.insert(key, schema);
    }
    let required: Vec<&String> = properties.keys().take(2).collect();
    json!({
        "name": name,
        "description": description.join(" "),
        "inputSchema": {
            "type": "object",
            "required": required,
            "properties": properties,
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": dice.below(2) == 0, "openWorldHint": false },
    })
}

fn sentence(dice: &mut Dice, words: u64) -> String {
    let mut text = String::new();
    for at in 0..words {
        let word = match dice.below(10) {
            0..4 => dice.of(&LITTLE).to_owned(),
            4..6 => dice.of(&NOUNS).to_owned(),
            6 => dice.of(&VERBS).to_owned(),
            _ => dice.rare(),
        };
        let _ = write!(text, "{}{word}", if at == 0 { "" } else { " " });
    }
    text + "."
}

/// Pseudo-random numbers that are always the same.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        let at = self.below(words.len() as u64);
        usize::try_from(at).ok().and_then(|at| words.get(at)).copied().unwrap_or_default()
    }

    /// One of many words, some of which are frequent, as in any language.
    fn rare(&mut self) -> String {
        let (a, b) = (self.below(RARE), self.below(RARE));
        let mut rest = a * b / RARE * (a.min(b) + 1) / RARE;
        let mut word = String::new();
        for _ in 0..3 {
            let at = usize::try_from(rest % SYLLABLES.len() as u64).unwrap_or_default();
            word.push_str(SYLLABLES[at]);
            rest /= SYLLABLES.len() as u64;
        }
        if rest > 0 {
            word.push_str(SYLLABLES[usize::try_from(rest).unwrap_or_default() % SYLLABLES.len()]);
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_a_catalogue_are_as_long_as_real_ones_and_have_names_of_their_own() {
        let tools = list(3, 500, 2);
        let tools = tools.as_array().unwrap();
        assert_eq!(tools.len(), 502);
        let mut names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 502);
        let mean = tools.iter().map(|tool| tool.to_string().len()).sum::<usize>() / tools.len();
        assert!((1200..1800).contains(&mean), "{mean}");
    }
}
