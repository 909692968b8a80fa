//! Generated files: all choices of layout come from a list of random bytes, so that a failing file can be
//! shrunk.

use std::fmt::Write;

/// A generated file.
#[derive(Debug)]
pub struct Generated {
    pub text: String,
    /// The comments that belong to no entry.
    pub comments: Vec<String>,
}

/// Random choices.
pub struct Dice<'a> {
    bytes: &'a [u8],
    text: String,
    newline: &'static str,
    comments: Vec<String>,
    /// Whether the position is inside an entry.
    inside: bool,
    marks: usize,
}

impl<'a> Dice<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut dice =
            Self { bytes, text: String::new(), newline: "\n", comments: Vec::new(), inside: false, marks: 0 };
        dice.newline = if dice.pick(3) == 1 { "\r\n" } else { "\n" };
        if dice.pick(8) == 1 {
            dice.text.push('\u{feff}');
        }
        dice
    }

    /// A number below `sides`; 0 when the bytes are used up.
    fn pick(&mut self, sides: u8) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first % sides
    }

    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn line(&mut self, text: &str) {
        let newline = self.newline;
        let _ = write!(self.text, "{text}{newline}");
    }

    fn mark(&mut self) -> String {
        self.marks += 1;
        let mark = format!("note {}", self.marks);
        if !self.inside {
            self.comments.push(mark.clone());
        }
        mark
    }

    fn finish(mut self, may_end: bool) -> Generated {
        if may_end && self.pick(3) == 1 {
            let end = self.text.trim_end_matches(['\n', '\r']).len();
            self.text.truncate(end);
        }
        Generated { text: self.text, comments: self.comments }
    }
}

pub fn json(mut dice: Dice<'_>, container: &str) -> Generated {
    json_gap(&mut dice);
    if dice.pick(12) == 11 {
        return dice.finish(true); // no value at all
    }
    let with_projects = dice.pick(3) == 2;
    let mut keys = vec!["\"theme\"", "\"list\""];
    keys.truncate(usize::from(dice.pick(3)));
    let place = usize::from(dice.pick(3)).min(keys.len());
    let own = format!("\"{container}\"");
    if dice.pick(5) != 4 {
        keys.insert(place, &own);
    }
    if with_projects {
        keys.push("\"projects\"");
    }
    json_object(&mut dice, &keys, &|dice, key| match key {
        "\"theme\"" => dice.put("\"da\\\"rk // no comment\""),
        "\"list\"" => dice.put("[1, {\"mcpServers\": {}},2.50]"),
        "\"projects\"" => json_object(dice, &["\"/p/a b\""], &|dice, _| {
            let own: &[&str] = if dice.pick(3) == 2 { &[] } else { &["\"mcpServers\""] };
            json_object(dice, own, &|dice, _| json_entries(dice));
        }),
        _ => json_entries(dice),
    });
    json_gap(&mut dice);
    dice.finish(false)
}

const ENTRIES: [&str; 4] = ["\"one\"", "\"two words\"", "\"thrée\"", "\"four\""];

fn json_entries(dice: &mut Dice<'_>) {
    let count = usize::from(dice.pick(5));
    json_object(dice, &ENTRIES[..count], &|dice, key| {
        let keys: &[&str] = if key == "\"two words\"" { &["\"url\""] } else { &["\"command\"", "\"args\""] };
        json_object(dice, keys, &|dice, key| match key {
            "\"url\"" => dice.put("\"https://example.org/${PART}\""),
            "\"args\"" => dice.put("[ \"-y\",\"a,}b\" ]"),
            _ => dice.put("\"npx\""),
        });
    });
}

fn json_object(dice: &mut Dice<'_>, keys: &[&str], value: &dyn Fn(&mut Dice<'_>, &str)) {
    dice.put("{");
    json_gap(dice);
    for (index, key) in keys.iter().enumerate() {
        let was_inside = dice.inside;
        dice.inside |= ENTRIES.contains(key);
        dice.put(key);
        json_gap(dice);
        dice.put(":");
        json_gap(dice);
        value(dice, key);
        dice.inside = was_inside;
        json_gap(dice);
        if index + 1 < keys.len() || dice.pick(4) == 3 {
            dice.put(",");
            json_gap(dice);
        }
    }
    dice.put("}");
}

fn json_gap(dice: &mut Dice<'_>) {
    for _ in 0..=dice.pick(2) {
        match dice.pick(9) {
            1 => dice.put(" "),
            2 | 3 => dice.line(""),
            4 => {
                dice.line("");
                dice.put("   ");
            }
            5 => dice.put("\t"),
            6 => {
                let mark = dice.mark();
                dice.line(&format!("// {mark}, \"}}"));
            }
            7 => {
                let mark = dice.mark();
                dice.put(&format!("/* {mark} {{*/"));
            }
            _ => {}
        }
    }
}

pub fn toml(mut dice: Dice<'_>) -> Generated {
    toml_filler(&mut dice);
    if dice.pick(2) == 1 {
        dice.line("model = \"x\" # [mcp_servers.none]");
    }
    let style = dice.pick(8);
    if style == 7 {
        dice.line("mcp_servers = { one = { command = \"a\" }, two = { url = \"https://x\" } }");
    } else if style == 6 {
        dice.line("mcp_servers.one.command = \"npx\"");
        dice.line("mcp_servers.one.args = [\"a\"]");
    }
    if dice.pick(2) == 1 {
        dice.line("[other.\"a b\"]");
        dice.line("  text = '''");
        dice.line("[mcp_servers.not]");
        dice.line("'''");
        toml_filler(&mut dice);
    }
    match style {
        0..=3 => {
            for name in ["one", "\"two words\"", "three"].into_iter().take(usize::from(dice.pick(4))) {
                toml_table(&mut dice, name);
                toml_filler(&mut dice);
            }
        }
        4 | 5 => {
            dice.line("[mcp_servers]");
            toml_filler(&mut dice);
            dice.line("one = { command = \"npx\", args = [\"a\"] } # about one");
            dice.line("two.command = \"x\"");
            toml_filler(&mut dice);
        }
        _ => {}
    }
    if dice.pick(2) == 1 {
        dice.line("[last]");
        dice.line("x = 1");
    }
    toml_filler(&mut dice);
    dice.finish(true)
}

fn toml_table(dice: &mut Dice<'_>, name: &str) {
    dice.inside = true;
    let indent = if dice.pick(3) == 1 { "  " } else { "" };
    dice.line(&format!("{indent}[mcp_servers.{name}]"));
    if dice.pick(3) == 1 {
        let mark = dice.mark();
        dice.line(&format!("# {mark}"));
    }
    dice.line(&format!("{indent}command = \"npx\" # why"));
    dice.line(&format!("{indent}args = ["));
    dice.line("  \"-y\", # one");
    dice.line("]");
    if dice.pick(2) == 1 {
        dice.line(&format!("{indent}startup_timeout_sec = 20"));
    }
    if dice.pick(2) == 1 {
        dice.line("");
        dice.line(&format!("{indent}  [mcp_servers.{name}.env]"));
        dice.line(&format!("{indent}  K = \"v\""));
    }
    dice.inside = false;
}

fn toml_filler(dice: &mut Dice<'_>) {
    for _ in 0..dice.pick(3) {
        match dice.pick(3) {
            1 => {
                let mark = dice.mark();
                dice.line(&format!("# {mark} [x]"));
            }
            _ => dice.line(""),
        }
    }
}

pub fn yaml(mut dice: Dice<'_>) -> Generated {
    yaml_filler(&mut dice);
    if dice.pick(6) == 1 {
        dice.line("---");
    }
    if dice.pick(2) == 1 {
        dice.line("GOOSE_MODEL: x # a: b");
        yaml_filler(&mut dice);
    }
    match dice.pick(9) {
        0 => {}
        8 => dice.line("extensions:"),
        1 => dice.line("extensions: {}"),
        2 => dice.line("extensions: # none"),
        3 => dice.line(
            "extensions: { one: { cmd: x, args: [a], type: stdio }, two: {uri: 'https://x', type: sse} }",
        ),
        _ => yaml_block(&mut dice),
    }
    yaml_filler(&mut dice);
    if dice.pick(2) == 1 {
        dice.line("last:");
        dice.line("- 1");
        dice.line("- a: 2");
        yaml_filler(&mut dice);
    }
    dice.finish(true)
}

fn yaml_block(dice: &mut Dice<'_>) {
    dice.line("extensions:");
    yaml_filler(dice);
    let indent = ["  ", "    ", " "][usize::from(dice.pick(3))];
    for name in ["one", "\"two words\"", "three"].into_iter().take(1 + usize::from(dice.pick(3))) {
        dice.inside = true;
        dice.line(&format!("{indent}{name}: # about {name}"));
        dice.line(&format!("{indent}  cmd: npx"));
        match dice.pick(3) {
            0 => dice.line(&format!("{indent}  args: [-y, '#a']")),
            1 => {
                dice.line(&format!("{indent}  args:"));
                dice.line(&format!("{indent}  - '-y'"));
            }
            _ => {}
        }
        if dice.pick(3) == 1 {
            dice.line(&format!("{indent}  description: |"));
            dice.line(&format!("{indent}    one: 1"));
            dice.line("");
            dice.line(&format!("{indent}    # no comment"));
        }
        if dice.pick(3) == 1 {
            dice.line(&format!("{indent}  bundled:"));
        }
        dice.inside = false;
        yaml_filler(dice);
    }
}

fn yaml_filler(dice: &mut Dice<'_>) {
    for _ in 0..dice.pick(3) {
        match dice.pick(4) {
            1 => {
                let mark = dice.mark();
                dice.line(&format!("# {mark}"));
            }
            2 => {
                let mark = dice.mark();
                dice.line(&format!("  # {mark}: x"));
            }
            _ => dice.line(""),
        }
    }
}
