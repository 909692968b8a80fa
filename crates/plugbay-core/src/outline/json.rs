//! The outline of JSON: a line for each path as `jq` writes it, then three rows of the largest array.

mod describe;
mod tree;

use describe::describe;

use super::{
    Kind,
    page::{Page, cost, count, counted},
    sample::{sample, sample_member},
    text,
};
use crate::{
    shape::{
        is_name, key_text,
        profile::{Id, Node, Profile, ROOT, Rows, key_name},
    },
    text::string_text,
};

/// Levels of detail, the most first: how deep, and how many keys of one object.
const LEVELS: [Level; 6] = [
    Level { depth: 6, keys: 40 },
    Level { depth: 4, keys: 30 },
    Level { depth: 3, keys: 20 },
    Level { depth: 2, keys: 14 },
    Level { depth: 2, keys: 8 },
    Level { depth: 1, keys: 4 },
];
/// The most lines of an outline.
const LINES: usize = 300;
/// How many names are shown of keys that have no line of their own.
const OTHER_KEYS: usize = 12;

#[derive(Clone, Copy)]
struct Level {
    depth: usize,
    keys: usize,
}

/// Reads a text as JSON, or as JSON lines; `None` if it is neither.
pub(super) fn read(whole: &str) -> Option<(Kind, Profile)> {
    let trimmed = whole.trim_start();
    if !trimmed.starts_with(['{', '[', '"']) {
        return None;
    }
    if let Ok(profile) = Profile::of(whole.as_bytes()) {
        return Some((Kind::Json, profile));
    }
    let mut lines = trimmed.lines().filter(|line| !line.trim().is_empty());
    let is_value = |line: &str| line.starts_with(['{', '[']) && Profile::of(line.as_bytes()).is_ok();
    let are_lines = lines.next().is_some_and(is_value) && lines.next().is_some_and(is_value);
    let profile = are_lines.then(|| Profile::of_lines(whole).ok())?;
    profile.map(|profile| (Kind::JsonLines, profile))
}

pub(super) fn write(page: &mut Page, whole: &str, kind: Kind, profile: &Profile, size: &str) {
    let name = if kind == Kind::JsonLines { "JSON lines" } else { "JSON" };
    page.line(&format!("{name}, {size}"));
    if tree::write(page, whole.as_bytes(), profile) {
        return;
    }
    let longest = &profile.longest;
    if longest.1.len() > whole.len() / 2 && longest.1.len() > 400 {
        return write_string(page, whole, profile, longest.0);
    }
    let rows = profile.rows.as_ref().filter(|rows| rows.count > 1 && rows.span.len() > whole.len() / 4);
    let room = if rows.is_some() { page.left() * 11 / 20 } else { page.left() };
    for line in structure(profile, room) {
        page.line(&line);
    }
    if let Some(rows) = rows {
        write_rows(page, whole.as_bytes(), profile, rows);
    }
}

/// Writes the outline of a string that is most of the text: of its contents, not of the JSON around it.
fn write_string(page: &mut Page, whole: &str, profile: &Profile, node: Id) {
    for line in structure(profile, page.left() / 4) {
        page.line(&line);
    }
    let span = &profile.longest.1;
    let inner = string_text(&whole.as_bytes()[span.start + 1..span.end - 1]);
    page.line(&format!("{} is text, its own lines:", path_to(profile, node)));
    text::write(page, &inner, &format!("{} characters", count(inner.chars().count())));
}

fn write_rows(page: &mut Page, json: &[u8], profile: &Profile, rows: &Rows) {
    let path = path_to(profile, rows.node);
    let is_one = profile.nodes[rows.node].arrays.count <= 1;
    let label = match (rows.is_map, is_one) {
        (true, _) => format!("members of {path}, samples cut:"),
        (false, true) => format!("rows of {path}, samples cut:"),
        (false, false) => format!("rows of the largest {path}, samples cut:"),
    };
    let room = page.left().saturating_sub(cost(&label));
    // Fewer rows are better than rows of which nothing is left.
    let choices = [vec![0, 1, 2], vec![0, 2], vec![0]];
    let all = |chosen: &Vec<usize>| {
        let chosen: Vec<&(usize, usize)> = chosen.iter().filter_map(|at| rows.samples.get(*at)).collect();
        let room = room / chosen.len().max(1);
        chosen
            .into_iter()
            .map(|(place, start)| row(json, rows, *place, *start, room))
            .collect::<Option<Vec<_>>>()
    };
    if let Some(lines) = choices.iter().find_map(all) {
        page.line(&label);
        page.lines(&lines);
    }
}

fn row(json: &[u8], rows: &Rows, place: usize, start: usize, tokens: usize) -> Option<String> {
    let label = if rows.is_map { String::new() } else { format!("[{place}]: ") };
    let room = tokens.checked_sub(cost(&label) + 1)?;
    let value = if rows.is_map { sample_member(json, start, room) } else { sample(json, start, room) };
    Some(format!("{label}{}", value?))
}

/// The lines on the structure, in at most `tokens` tokens.
fn structure(profile: &Profile, tokens: usize) -> Vec<String> {
    let price = |lines: &[String]| lines.iter().map(|line| cost(line)).sum::<usize>();
    let mut lines = Vec::new();
    for level in LEVELS {
        let mut writer = Structure { profile, level, lines: Vec::new(), above: Vec::new() };
        writer.node(ROOT, "", 0, 0, "");
        lines = writer.lines;
        if price(&lines) <= tokens {
            return lines;
        }
    }
    while price(&lines) > tokens {
        lines.pop();
    }
    lines
}

struct Structure<'a> {
    profile: &'a Profile,
    level: Level,
    lines: Vec<String>,
    above: Vec<Id>,
}

impl Structure<'_> {
    fn line(&mut self, indent: usize, text: &str) {
        if self.lines.len() < LINES {
            self.lines.push(format!("{:indent$}{text}", "", indent = indent * 2));
        }
    }

    /// Adds a node's lines. `path` is relative to the array around it; `often`: in how many objects it is.
    fn node(&mut self, id: Id, path: &str, indent: usize, depth: usize, often: &str) {
        let node = &self.profile.nodes[id];
        let is_again = self.above.contains(&id);
        self.above.push(id);
        let shown = if path.is_empty() { "." } else { path };
        let scalars = describe(node);
        let is_plain_object = scalars.is_empty() && node.arrays.count == 0 && node.objects.count > 0;
        if !(scalars.is_empty() && (node.arrays.count > 0 || is_plain_object && often.is_empty())) {
            let object = if node.objects.count > 0 { object_words(node, &scalars) } else { String::new() };
            let keys = if self.is_too_deep(depth) { key_names(node) } else { String::new() };
            self.line(indent, &format!("{shown}: {scalars}{object}{keys}{often}"));
        } else if is_plain_object && self.is_too_deep(depth) && !path.is_empty() {
            self.line(indent, &format!("{shown}: object{}", key_names(node)));
        }
        if node.arrays.count > 0 {
            let often = if scalars.is_empty() { often } else { "" };
            self.array(node, path, indent, depth, (is_again, often));
        }
        if node.objects.count > 0 && !is_again {
            self.object(node, path, indent, depth);
        }
        self.above.pop();
    }

    fn array(&mut self, node: &Node, path: &str, indent: usize, depth: usize, (again, often): (bool, &str)) {
        let shown = if path.is_empty() { ".[]".to_owned() } else { format!("{path}[]") };
        let item = node.arrays.item.map(|item| &self.profile.nodes[item]);
        let is_object = item.is_some_and(|item| item.objects.count == item.count());
        let words = elements(node, if is_object { "object" } else { "element" });
        if again {
            return self.line(indent, &format!("{shown}: {words}{often}, as above"));
        }
        let Some((id, item)) = node.arrays.item.zip(item) else {
            return self.line(indent, &format!("{shown}: {words}{often}"));
        };
        let scalars = describe(item);
        let colon = if scalars.is_empty() { "" } else { ": " };
        let is_end = self.is_too_deep(depth + 1) || self.above.contains(&id);
        let keys = if is_end { key_names(item) } else { String::new() };
        self.line(indent, &format!("{shown}: {words}{often}{colon}{scalars}{keys}"));
        if is_end {
            return;
        }
        self.above.push(id);
        if item.arrays.count > 0 {
            self.array(item, "", indent + 1, depth + 1, (false, ""));
        }
        if item.objects.count > 0 {
            self.object(item, "", indent + 1, depth + 1);
        }
        self.above.pop();
    }

    fn object(&mut self, node: &Node, path: &str, indent: usize, depth: usize) {
        if self.is_too_deep(depth) {
            return;
        }
        if let Some(map) = node.objects.map {
            let shown = if path.is_empty() { ".[]".to_owned() } else { format!("{path}[]") };
            let members = counted(node.objects.members, "member", "members");
            let sampled = sampled(node.objects.members, node.objects.passed);
            let of = if node.objects.count > 1 {
                format!(" in {} objects", count(node.objects.count))
            } else {
                String::new()
            };
            let (value, words) = (&self.profile.nodes[map], describe(&self.profile.nodes[map]));
            let colon = if words.is_empty() { "" } else { ": " };
            self.line(indent, &format!("{shown}: {members} by key{of}{sampled}{colon}{words}"));
            if value.arrays.count > 0 && !self.above.contains(&map) {
                self.array(value, "", indent + 1, depth + 1, (false, ""));
            }
            if value.objects.count > 0 && !self.above.contains(&map) {
                self.above.push(map);
                self.object(value, "", indent + 1, depth + 1);
                self.above.pop();
            }
            return;
        }
        for key in node.objects.keys.iter().take(self.level.keys) {
            let path = format!("{path}{}", step(&key_name(&key.raw)));
            let often = if key.count < node.objects.count {
                format!(" (in {} of {})", count(key.count), count(node.objects.count))
            } else {
                String::new()
            };
            match key.node {
                Some(child) => self.node(child, &path, indent, depth + 1, &often),
                None => self.line(indent, &format!("{path}: …{often}")),
            }
        }
        self.other_keys(node, indent);
    }

    fn is_too_deep(&self, depth: usize) -> bool {
        depth > self.level.depth
    }

    fn other_keys(&mut self, node: &Node, indent: usize) {
        let others = node.objects.keys.len().saturating_sub(self.level.keys);
        if others + node.objects.more == 0 {
            return;
        }
        let names = node.objects.keys.iter().skip(self.level.keys).take(OTHER_KEYS);
        let names: Vec<String> = names.map(|key| step(&key_name(&key.raw))).collect();
        let more = if node.objects.more > 0 { " and more" } else { "" };
        let rest = if others > OTHER_KEYS { ", …" } else { "" };
        self.line(indent, &format!("… {others} other keys{more}: {}{rest}", names.join(", ")));
    }
}

/// `object`, or how many there are beside other kinds.
fn object_words(node: &Node, scalars: &str) -> String {
    if scalars.is_empty() { "object".to_owned() } else { format!(" | object {}", count(node.objects.count)) }
}

/// ` {login, id, …}`: keys of objects that have no lines.
fn key_names(node: &Node) -> String {
    let keys = &node.objects.keys;
    let mut names: Vec<String> =
        keys.iter().take(OTHER_KEYS).map(|key| key_text(&key_name(&key.raw))).collect();
    if keys.len() > OTHER_KEYS || node.objects.more > 0 {
        names.push("…".to_owned());
    }
    if names.is_empty() { String::new() } else { format!(" {{{}}}", names.join(", ")) }
}

/// `1,204 objects`, or `0..4 objects each, 12,031 in all`.
fn elements(node: &Node, one: &str) -> String {
    let arrays = &node.arrays;
    let many = format!("{one}s");
    let sampled = sampled(arrays.elements, arrays.passed);
    if arrays.count == 1 {
        return format!("{}{sampled}", counted(arrays.elements, one, &many));
    }
    let each = if arrays.fewest == arrays.most {
        counted(arrays.most, one, &many)
    } else {
        format!("{}..{} {many}", count(arrays.fewest), count(arrays.most))
    };
    format!("{each} each, {} in all{sampled}", count(arrays.elements))
}

/// A note on how many values the lines below are about, if not all of them.
fn sampled(all: usize, passed: usize) -> String {
    if passed == 0 { String::new() } else { format!(" (below: of {})", count(all - passed)) }
}

/// A key as a step of a `jq` path.
fn step(key: &str) -> String {
    if is_name(key) { format!(".{key}") } else { format!(".{}", serde_json::Value::from(key)) }
}

/// The path of a node, as `jq` writes it.
fn path_to(profile: &Profile, target: Id) -> String {
    let mut seen = vec![false; profile.nodes.len()];
    let path = find(profile, ROOT, target, &mut seen).unwrap_or_default();
    if path.starts_with('.') { path } else { format!(".{path}") }
}

fn find(profile: &Profile, id: Id, target: Id, seen: &mut [bool]) -> Option<String> {
    if id == target {
        return Some(String::new());
    }
    if std::mem::replace(&mut seen[id], true) {
        return None;
    }
    let node = &profile.nodes[id];
    for inner in [node.arrays.item, node.objects.map].into_iter().flatten() {
        if let Some(path) = find(profile, inner, target, seen) {
            return Some(format!("[]{path}"));
        }
    }
    node.objects.keys.iter().find_map(|key| {
        let path = find(profile, key.node?, target, seen)?;
        Some(format!("{}{path}", step(&key_name(&key.raw))))
    })
}
