//! Generated requests of a host: their parts, and the steps of the search for the worst one.

use serde_json::{Map, Value, json};

use crate::dice::Dice;

pub(super) const UNITS: [&str; 16] = [
    "y",
    "yay",
    "漢",
    "a*",
    "**",
    "[a-",
    "{a,b}",
    "ab ",
    "__",
    ".",
    "é",
    "a,",
    "ing",
    "fast__echo,",
    "\\",
    "?",
];

// The limits that plugbay states in `docs/modes.md`.
const NAME: usize = 1 << 10;
const QUERY: usize = 8 << 10;
const URI: usize = 8 << 10;
const ALL_NAMES: usize = 64 << 10;
const CURSOR: usize = 64 << 10;
const META: usize = 1 << 20;
const CAPABILITIES: usize = 256 << 10;
/// The longest params or answer, escapes included: with an envelope, it is still below the limit of a
/// message.
pub(super) const LONGEST: usize = 15 << 20;
/// The limit of a text that only the length of the whole message limits.
const NONE: usize = 0;

/// Number of properties of the tool `wide`. With more than 256 KiB its schema would not be used to check
/// arguments.
pub(super) const PROPERTIES: usize = 3000;

/// A request of a host.
pub(super) enum Request {
    /// A call of a built-in tool, with its arguments.
    Tool(&'static str, String),
    /// A request with this method, with its params.
    Method(&'static str, String),
}

impl Request {
    fn len(&self) -> usize {
        let (Self::Tool(_, text) | Self::Method(_, text)) = self;
        text.len()
    }
}

pub(super) struct Attack {
    pub(super) recipe: String,
    pub(super) request: Request,
}

/// How to make a request: the same recipe makes the same bytes.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    way: usize,
    units: Vec<&'static str>,
    bytes: usize,
}

/// One field of one request.
struct Way {
    label: &'static str,
    limit: usize,
    make: fn(&Recipe) -> Request,
}

const WAYS: [Way; 30] = [
    Way { label: "search_tools query", limit: QUERY, make: |r| tool("search_tools", "query", r) },
    Way {
        label: "search_tools mistyped words",
        limit: QUERY,
        make: |r| {
            let sentence = |n| if n % r.unit().len() == 0 { ". " } else { " " };
            let words: String = (0..r.bytes / 10).map(|n| near_word(7 * n) + sentence(n)).collect();
            Request::Tool("search_tools", json!({ "query": words }).to_string())
        },
    },
    Way { label: "search_tools server", limit: NAME, make: |r| tool("search_tools", "server", r) },
    Way { label: "describe_tool name", limit: NAME, make: |r| tool("describe_tool", "name", r) },
    Way {
        label: "describe_tool names",
        limit: ALL_NAMES,
        make: |r| Request::Tool("describe_tool", json!({ "name": r.names() }).to_string()),
    },
    Way { label: "execute_tool name", limit: NAME, make: |r| tool("execute_tool", "name", r) },
    Way { label: "gateway_activate name", limit: NAME, make: |r| tool("gateway_activate", "name", r) },
    Way { label: "gateway_deactivate name", limit: NAME, make: |r| tool("gateway_deactivate", "name", r) },
    Way {
        label: "wide: other keys",
        limit: NONE,
        make: |r| wide(&members(r.bytes / 16, |n| format!("{}{n}", r.unit()), "1")),
    },
    Way {
        label: "wide: near keys",
        limit: NONE,
        make: |r| wide(&members(r.bytes / 16, |n| format!("propert{n}"), "1")),
    },
    Way {
        label: "wide: known keys",
        limit: NONE,
        make: |r| wide(&members((r.bytes / 16).min(PROPERTIES), |n| format!("property_{n}"), &r.value())),
    },
    Way {
        label: "wide: one long value",
        limit: NONE,
        make: |r| wide(&json!({ "property_1": r.text() }).to_string()),
    },
    Way { label: "wide: a list", limit: NONE, make: |r| wide(&format!(r#"{{"list":[{}]}}"#, r.values())) },
    Way {
        label: "wide: deep",
        limit: NONE,
        make: |r| wide(&format!(r#"{{"deep":{}{}{}}}"#, "[".repeat(50), r.values(), "]".repeat(50))),
    },
    Way {
        label: "wide: many objects",
        limit: NONE,
        make: |r| wide(&format!(r#"{{"list":[{}{{}}]}}"#, r#"{"a":{}},"#.repeat(r.bytes / 9))),
    },
    Way {
        label: "tools/call name",
        limit: NAME,
        make: |r| method("tools/call", &json!({ "name": r.text(), "arguments": {} })),
    },
    Way {
        label: "tools/call _meta",
        limit: META,
        make: |r| {
            method(
                "tools/call",
                &json!({ "name": "execute_tool", "arguments": { "name": "s__wide" }, "_meta": { "progressToken": r.text() } }),
            )
        },
    },
    Way {
        label: "resources/read uri",
        limit: URI,
        make: |r| method("resources/read", &json!({ "uri": r.text() })),
    },
    Way {
        label: "resources/read uri with a scheme",
        limit: URI,
        make: |r| method("resources/read", &json!({ "uri": format!("s://{}", r.text()) })),
    },
    Way {
        label: "resources/subscribe uri",
        limit: URI,
        make: |r| method("resources/subscribe", &json!({ "uri": r.text() })),
    },
    Way {
        label: "prompts/get name",
        limit: NAME,
        make: |r| method("prompts/get", &json!({ "name": r.text() })),
    },
    Way {
        label: "prompts/get arguments",
        limit: NONE,
        make: |r| {
            Request::Method(
                "prompts/get",
                format!(
                    r#"{{"name":"s__p","arguments":{}}}"#,
                    members(r.bytes / 24, |n| format!("{}{n}", r.unit()), "\"v\"")
                ),
            )
        },
    },
    Way {
        label: "completion/complete value",
        limit: NONE,
        make: |r| {
            method(
                "completion/complete",
                &json!({ "ref": { "type": "ref/prompt", "name": "s__p" }, "argument": { "name": "a", "value": r.text() } }),
            )
        },
    },
    Way {
        label: "completion/complete ref",
        limit: NAME,
        make: |r| {
            method(
                "completion/complete",
                &json!({ "ref": { "type": "ref/prompt", "name": r.text() }, "argument": { "name": "a", "value": "" } }),
            )
        },
    },
    Way {
        label: "tools/list cursor",
        limit: CURSOR,
        make: |r| method("tools/list", &json!({ "cursor": r.text() })),
    },
    Way {
        label: "resources/list cursor",
        limit: CURSOR,
        make: |r| method("resources/list", &json!({ "cursor": r.text() })),
    },
    Way {
        label: "logging/setLevel level",
        limit: NONE,
        make: |r| method("logging/setLevel", &json!({ "level": r.text() })),
    },
    Way {
        label: "initialize capabilities",
        limit: CAPABILITIES,
        make: |r| initialize(&members(r.bytes / 24, |n| format!("{}{n}", r.unit()), "{}"), "\"t\""),
    },
    Way { label: "initialize clientInfo", limit: NONE, make: |r| initialize("{}", &r.value()) },
    Way {
        label: "ping params",
        limit: NONE,
        make: |r| Request::Method("ping", members(r.bytes / 16, |n| format!("{}{n}", r.unit()), "1")),
    },
];

fn tool(name: &'static str, key: &str, recipe: &Recipe) -> Request {
    Request::Tool(name, json!({ key: recipe.text() }).to_string())
}

fn method(name: &'static str, params: &Value) -> Request {
    Request::Method(name, params.to_string())
}

fn wide(arguments: &str) -> Request {
    Request::Tool("execute_tool", execute("s__wide", arguments))
}

fn initialize(capabilities: &str, name: &str) -> Request {
    let params = format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":{name},"version":"0"}}}}"#
    );
    Request::Method("initialize", params)
}

/// The arguments of `execute_tool`.
pub(super) fn execute(name: &str, arguments: &str) -> String {
    format!(r#"{{"name":"{name}","arguments":{arguments}}}"#)
}

/// An object with this many members, all with the same raw value.
pub(super) fn members(count: usize, key: impl Fn(usize) -> String, value: &str) -> String {
    let members: Vec<String> = (0..count).map(|n| format!("{}:{value}", Value::from(key(n)))).collect();
    format!("{{{}}}", members.join(","))
}

/// A text of exactly this many bytes.
pub(super) fn long(unit: &str, bytes: usize) -> String {
    let text = unit.repeat(bytes / unit.len());
    let rest = bytes - text.len();
    text + &"x".repeat(rest)
}

impl Recipe {
    fn unit(&self) -> String {
        self.units.concat()
    }

    fn text(&self) -> String {
        long(&self.unit(), self.bytes)
    }

    /// A short text as raw JSON.
    fn value(&self) -> String {
        Value::from(long(&self.unit(), self.bytes.min(2000))).to_string()
    }

    /// A repeated text, as the elements of a raw list.
    fn values(&self) -> String {
        let value = Value::from(self.unit()).to_string();
        vec![value.as_str(); (self.bytes / (value.len() + 1)).max(1)].join(",")
    }

    /// As many names as one call may have, in this many bytes.
    fn names(&self) -> String {
        let name = long(&self.unit().replace(',', "x"), (self.bytes / 100).saturating_sub(1).clamp(1, NAME));
        let mut names = vec![name.as_str(); 100].join(",");
        names.truncate(names.floor_char_boundary(self.bytes));
        names
    }

    pub(super) fn attack(&self) -> Attack {
        let (way, mut recipe) = (&WAYS[self.way], self.clone());
        let request = loop {
            let request = (way.make)(&recipe);
            if request.len() <= LONGEST {
                break request;
            }
            recipe.bytes /= 2;
        };
        let recipe = format!("{}: {:?} up to {} bytes", way.label, self.unit(), recipe.bytes);
        Attack { recipe, request }
    }

    /// A random recipe, with a length around the limit of its field, or of at most `most` bytes.
    pub(super) fn draw(dice: &mut Dice, most: usize) -> Self {
        let way = dice.roll(WAYS.len());
        let (limit, large) = (WAYS[way].limit, (most >> dice.roll(8)).max(1000));
        let bytes = match limit {
            NONE => large,
            limit => *dice.pick(&[limit / 2, limit - 1, limit, limit + 1, large]),
        };
        Self { way, units: vec![*dice.pick(&UNITS)], bytes }
    }

    /// A variation of one of the worst recipes so far.
    pub(super) fn mutated(dice: &mut Dice, worst: &[Self], most: usize) -> Self {
        let mut recipe = dice.pick(worst).clone();
        match dice.roll(4) {
            0 => recipe.bytes = (recipe.bytes * 2).min(most),
            1 => recipe.bytes = (recipe.bytes / 2).max(16),
            2 => recipe.units = vec![recipe.units[0], *dice.pick(&UNITS)],
            _ => recipe.way = dice.roll(WAYS.len()),
        }
        recipe
    }
}

/// A word of eight letters. Up to three of them differ from `abcdefgh`.
fn near_word(number: usize) -> String {
    let mut letters = *b"abcdefgh";
    for (letter, place) in [(number, 1), (number / 26, 3), (number / 676, 6)] {
        letters[place] = b"abcdefghijklmnopqrstuvwxyz"[letter % 26];
    }
    String::from_utf8_lossy(&letters).into_owned()
}

/// A word of two letters. Each tool with near words has 90 of these, too.
fn short_word(number: usize) -> String {
    let letter = |number: usize| char::from(b"bcdfghjklmnpqrstvwxz"[number % 20]);
    [letter(number), letter(number / 20)].iter().collect()
}

/// The tools that the requests use: one with very many properties, many with long names, and many whose words
/// are like each other.
pub(super) fn tools() -> String {
    let properties: Map<String, Value> = (0..PROPERTIES)
        .map(|n| (format!("property_{n}"), json!({ "type": "string", "pattern": "^(a+)+$" })))
        .collect();
    let wide = json!({ "name": "wide", "inputSchema": { "type": "object", "properties": properties } });
    let plain = json!({ "type": "object", "properties": { "text": { "type": "string" }, "count": { "type": "integer" } } });
    let mut all = vec![
        wide,
        json!({ "name": "plain", "inputSchema": plain }),
        json!({ "name": "next", "inputSchema": { "type": "object" } }),
    ];
    all.extend((0..300).map(
        |n| json!({ "name": format!("{}{n}", "long_name_".repeat(8)), "inputSchema": { "type": "object" } }),
    ));
    all.extend((0..400).map(|n| {
        let name: Vec<String> = (0..5).map(|word| near_word(5 * n + word)).collect();
        let words: Vec<String> =
            (0..400).map(|word| near_word(400 * n + word)).chain((0..90).map(short_word)).collect();
        json!({ "name": name.join("_"), "description": words.join(" "), "inputSchema": { "type": "object" } })
    }));
    Value::from(all).to_string()
}

/// The requests that once held up others.
pub(super) fn known(quick: bool) -> Vec<Attack> {
    let size = if quick { 1 << 19 } else { 3 << 20 };
    let attack = |recipe: &str, request| Attack { recipe: recipe.to_owned(), request };
    let call = |recipe: &str, arguments| attack(recipe, Request::Tool("execute_tool", arguments));
    let mut all = Vec::new();
    for (name, key, unit) in [
        ("search_tools", "query", "y"),
        ("search_tools", "query", "漢"),
        ("search_tools", "server", "*a"),
        ("describe_tool", "name", "漢"),
        ("describe_tool", "name", "a"),
        ("execute_tool", "name", "漢"),
        ("execute_tool", "name", "x"),
        ("gateway_activate", "name", "*a"),
        ("gateway_activate", "name", "{a,"),
    ] {
        // One length over the limit, and the longest that is processed.
        for bytes in [size, if key == "query" { QUERY } else { NAME }] {
            let request = Request::Tool(name, json!({ key: long(unit, bytes) }).to_string());
            all.push(attack(&format!("{name} {key}: {bytes} bytes of {unit:?}"), request));
        }
    }
    let said: String = (0..90).map(|n| short_word(n) + " ").collect();
    let each_a_sentence: String = (0..QUERY / 9).map(|n| near_word(11 * n) + "\n").collect();
    for (recipe, query) in [
        ("a mistyped word beside 90 others", format!("{said}abcdefgh")),
        ("three sentences of them", format!("{said}abcdefgh\n").repeat(3)),
        ("900 mistyped words, each a sentence", each_a_sentence),
    ] {
        let request = Request::Tool("search_tools", json!({ "query": query }).to_string());
        all.push(attack(&format!("search_tools query: {recipe}"), request));
    }
    for bytes in [size, NAME] {
        let request =
            Request::Method("tools/call", json!({ "name": long("漢", bytes), "arguments": {} }).to_string());
        all.push(attack(&format!("tools/call name: {bytes} bytes of \"漢\""), request));
    }
    let names: Vec<String> = (0..20_000).map(|n| format!("s__long_name_{n}")).collect();
    for count in [names.len(), 100] {
        let request = Request::Tool("describe_tool", json!({ "name": names[..count].join(",") }).to_string());
        all.push(attack(&format!("describe_tool: {count} names"), request));
    }
    let unknown = |count: usize| members(count, |n| format!("u{n}"), "1");
    all.push(call(
        "wide: 5,000 near keys",
        execute("s__wide", &members(5000, |n| format!("propertx_{n}"), "1")),
    ));
    all.push(call("plain: 100,000 unknown keys", execute("s__plain", &unknown(100_000))));
    all.push(call("plain: 900,000 unknown keys", execute("s__plain", &unknown(900_000))));
    if !quick {
        all.push(call("wide: 900,000 unknown keys", execute("s__wide", &unknown(900_000))));
    }
    let list = format!("[{}]", vec!["\"__\""; 100_000].join(","));
    for tool in ["s__wide", "s__plain"] {
        all.push(call(
            &format!("{tool}: 100,000 \"__\" in a list"),
            execute(tool, &format!(r#"{{"list":{list}}}"#)),
        ));
    }
    all
}
