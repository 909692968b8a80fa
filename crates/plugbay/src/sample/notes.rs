//! A server that keeps notes in memory: they are gone when it ends.

use serde_json::{Value, json};

use super::{
    arguments::Arguments,
    server::{About, Outcome, Tool},
};

pub(super) const ABOUT: About = About {
    name: "notes",
    instructions: "A notebook in memory: what it holds is gone when the server ends.",
};

#[derive(Default)]
pub(super) struct Notebook {
    notes: Vec<Note>,
    last_id: i64,
}

struct Note {
    id: i64,
    title: String,
    text: String,
    tags: Vec<String>,
}

pub(super) fn tools() -> Vec<Tool<Notebook>> {
    vec![
        Tool {
            name: "add",
            description: "Adds a note and gives its number, by which it can be read, changed and deleted later.",
            read_only: false,
            properties: json!({
                "title": text("One line that says what the note is about."),
                "text": text("The note itself, of any length."),
                "tags": tags("Words to find the note by."),
            }),
            required: &["title"],
            run: |book, arguments| book.add(arguments),
        },
        Tool {
            name: "list",
            description: "All notes, the oldest first: number, title and tags, without their text.",
            read_only: true,
            properties: json!({ "tag": text("Only notes with this tag.") }),
            required: &[],
            run: |book, arguments| book.list(arguments),
        },
        Tool {
            name: "read",
            description: "One note with its text. Use list or search first to find its number.",
            read_only: true,
            properties: json!({ "id": id("The number of the note.") }),
            required: &["id"],
            run: |book, arguments| book.read(arguments),
        },
        Tool {
            name: "search",
            description: "Notes whose title, text or tags hold every word of a query, in any case and order.",
            read_only: true,
            properties: json!({
                "query": text("One or more words, separated by spaces."),
                "limit": { "type": "integer", "minimum": 1, "description": "At most this many; 10 if absent." },
            }),
            required: &["query"],
            run: |book, arguments| book.search(arguments),
        },
        Tool {
            name: "update",
            description: "Changes a note. What is not given stays as it is; tags are replaced as a whole.",
            read_only: false,
            properties: json!({
                "id": id("The number of the note."),
                "title": text("The new title."),
                "text": text("The new text."),
                "tags": tags("The new tags."),
            }),
            required: &["id"],
            run: |book, arguments| book.update(arguments),
        },
        Tool {
            name: "delete",
            description: "Deletes a note for good. Its number is not given to another note.",
            read_only: false,
            properties: json!({ "id": id("The number of the note.") }),
            required: &["id"],
            run: |book, arguments| book.delete(arguments),
        },
    ]
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn tags(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

fn id(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "description": description })
}

impl Notebook {
    fn add(&mut self, arguments: &Arguments<'_>) -> Outcome {
        let title = arguments.text("title")?.trim();
        if title.is_empty() {
            return Err("\"title\" must not be empty".to_owned());
        }
        let text = arguments.text_or("text", "")?.to_owned();
        let tags = arguments.texts("tags")?;
        self.last_id += 1;
        let id = self.last_id;
        self.notes.push(Note { id, title: title.to_owned(), text, tags });
        Ok(format!("note {id} added").into())
    }

    fn list(&mut self, arguments: &Arguments<'_>) -> Outcome {
        let tag = arguments.text_or("tag", "")?;
        let wanted = |note: &&Note| tag.is_empty() || note.tags.iter().any(|own| own == tag);
        Ok(lines(self.notes.iter().filter(wanted)).into())
    }

    fn read(&mut self, arguments: &Arguments<'_>) -> Outcome {
        let note = self.note(arguments.integer("id")?)?;
        let text = if note.text.is_empty() { String::new() } else { format!("\n\n{}", note.text) };
        Ok(format!("{}{text}", note.line()).into())
    }

    fn search(&mut self, arguments: &Arguments<'_>) -> Outcome {
        let query = arguments.text("query")?.to_lowercase();
        let limit = if arguments.has("limit") { arguments.integer("limit")? } else { 10 };
        let limit = usize::try_from(limit).map_err(|_| "\"limit\" must be at least 1")?;
        let matches = |note: &&Note| {
            let whole = format!("{} {} {}", note.title, note.text, note.tags.join(" ")).to_lowercase();
            query.split_whitespace().all(|word| whole.contains(word))
        };
        Ok(lines(self.notes.iter().filter(matches).take(limit)).into())
    }

    fn update(&mut self, arguments: &Arguments<'_>) -> Outcome {
        let id = arguments.integer("id")?;
        let tags = arguments.texts("tags")?;
        let note = self.note(id)?;
        let title = arguments.text_or("title", &note.title)?.to_owned();
        let text = arguments.text_or("text", &note.text)?.to_owned();
        note.title = title;
        note.text = text;
        if arguments.has("tags") {
            note.tags = tags;
        }
        Ok(format!("note {id} updated").into())
    }

    fn delete(&mut self, arguments: &Arguments<'_>) -> Outcome {
        let id = arguments.integer("id")?;
        self.note(id)?;
        self.notes.retain(|note| note.id != id);
        Ok(format!("note {id} deleted").into())
    }

    fn note(&mut self, id: i64) -> Result<&mut Note, String> {
        self.notes.iter_mut().find(|note| note.id == id).ok_or_else(|| format!("there is no note {id}"))
    }
}

impl Note {
    fn line(&self) -> String {
        let tags: String = self.tags.iter().flat_map(|tag| [" #", tag]).collect();
        format!("{}. {}{tags}", self.id, self.title)
    }
}

fn lines<'a>(notes: impl Iterator<Item = &'a Note>) -> String {
    let lines: Vec<String> = notes.map(Note::line).collect();
    if lines.is_empty() { "no notes".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::{super::server::try_tool, *};

    #[test]
    fn keeps_finds_changes_and_forgets() {
        let calls = [
            ("list", json!({})),
            ("add", json!({ "title": "Milk", "tags": ["shop"] })),
            ("add", json!({ "title": "Plan", "text": "Call the dairy about MILK" })),
            ("search", json!({ "query": "milk" })),
            ("search", json!({ "query": "dairy milk", "limit": 1 })),
            ("list", json!({ "tag": "shop" })),
            ("update", json!({ "id": 1, "title": "Oat milk" })),
            ("read", json!({ "id": 1 })),
            ("read", json!({ "id": 2 })),
            ("delete", json!({ "id": 1 })),
            ("add", json!({ "title": "Third" })),
        ];
        let answers = try_tool(tools(), Notebook::default(), &calls);
        let expected = [
            "no notes",
            "note 1 added",
            "note 2 added",
            "1. Milk #shop\n2. Plan",
            "2. Plan",
            "1. Milk #shop",
            "note 1 updated",
            "1. Oat milk #shop",
            "2. Plan\n\nCall the dairy about MILK",
            "note 1 deleted",
            "note 3 added",
        ];
        assert_eq!(answers, expected.map(|text| Ok(text.to_owned())));
    }

    #[test]
    fn refuses_in_words() {
        let calls = [
            ("delete", json!({ "id": 7 })),
            ("add", json!({ "title": " " })),
            ("add", json!({ "title": "x", "tags": "shop" })),
            ("search", json!({ "query": "x", "limit": -1 })),
        ];
        let expected = [
            "there is no note 7",
            "\"title\" must not be empty",
            "\"tags\" must be an array of strings",
            "\"limit\" must be at least 1",
        ];
        let answers = try_tool(tools(), Notebook::default(), &calls);
        assert_eq!(answers, expected.map(|text| Err(text.to_owned())));
    }
}
