//! The places of the mappings in a YAML file.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle};

use super::EditError;
use crate::read::yaml;

/// A mapping with its entries in the order of the file.
#[derive(Debug)]
pub(super) struct Mapping {
    /// Whether it is written between braces.
    pub(super) is_flow: bool,
    /// The range including the braces; meaningless for a block.
    pub(super) range: Range<usize>,
    pub(super) entries: Vec<MappingEntry>,
}

#[derive(Debug)]
pub(super) struct MappingEntry {
    pub(super) name: String,
    pub(super) key: Range<usize>,
    pub(super) value: Node,
}

#[derive(Debug)]
pub(super) enum Node {
    /// There is no value.
    Empty,
    /// A scalar or an alias.
    Scalar {
        range: Range<usize>,
        is_block: bool,
    },
    Sequence {
        is_flow: bool,
        range: Range<usize>,
        items: Vec<Node>,
    },
    Mapping(Mapping),
}

impl Mapping {
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name == name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        self.position(name).map(|index| &self.entries[index].value)
    }
}

impl Node {
    /// The end of this value's text; `None` if it has no text.
    pub(super) fn end(&self, text: &str) -> Option<usize> {
        match self {
            Self::Empty => None,
            Self::Scalar { range, is_block: false } => Some(range.end),
            // For the parser it extends to the next token.
            Self::Scalar { range, .. } => {
                let last_break = text[range.clone()].rfind('\n');
                Some(
                    last_break
                        .filter(|_| range.end < text.len())
                        .map_or(range.end, |at| range.start + at + 1),
                )
            }
            Self::Sequence { is_flow: false, items, .. } => {
                items.iter().rev().find_map(|item| item.end(text))
            }
            Self::Mapping(Mapping { is_flow: false, entries, .. }) => {
                entries.last().map(|entry| entry.value.end(text).unwrap_or(entry.key.end).max(entry.key.end))
            }
            Self::Sequence { range, .. } | Self::Mapping(Mapping { range, .. }) => Some(range.end),
        }
    }
}

/// The mapping at the root of the file; `None` for a file without any value.
pub(super) fn root(text: &str) -> Result<Option<Mapping>, EditError> {
    let mut events = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| EditError::Syntax { format: "YAML", message: yaml::reason(&error) })?;
        events.push((event, span));
    }
    let mut starts =
        events.iter().enumerate().filter(|(_, (event, _))| matches!(event, Event::DocumentStart(..)));
    let Some((first, _)) = starts.next() else { return Ok(None) };
    if starts.next().is_some() {
        return Err(EditError::Unsafe("it has several documents".to_owned()));
    }
    let mut reader = Reader { events: events.split_off(first + 1).into_iter() };
    match reader.node()? {
        Some(Node::Mapping(mapping)) => Ok(Some(mapping)),
        None | Some(Node::Empty) => Ok(None),
        Some(_) => Err(EditError::Shape("the file".to_owned())),
    }
}

struct Reader<'a> {
    events: std::vec::IntoIter<(Event<'a>, Span)>,
}

impl Reader<'_> {
    /// The next value; `None` at the end of a collection or of the document.
    fn node(&mut self) -> Result<Option<Node>, EditError> {
        while let Some((event, span)) = self.events.next() {
            let range = bytes(&span)?;
            match event {
                Event::Scalar(_, ScalarStyle::Plain, 0, None) if range.is_empty() => {
                    return Ok(Some(Node::Empty));
                }
                Event::Scalar(_, style, ..) => {
                    let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                    return Ok(Some(Node::Scalar { range, is_block }));
                }
                Event::Alias(_) => return Ok(Some(Node::Scalar { range, is_block: false })),
                Event::SequenceStart(style, ..) => return self.sequence(style, range.start).map(Some),
                Event::MappingStart(style, ..) => return self.mapping(style, range.start).map(Some),
                Event::SequenceEnd | Event::MappingEnd | Event::DocumentEnd | Event::StreamEnd => {
                    return Ok(None);
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn sequence(&mut self, style: StructureStyle, start: usize) -> Result<Node, EditError> {
        let mut items = Vec::new();
        loop {
            let end = self.peek_end();
            match self.node()? {
                Some(item) => items.push(item),
                None => {
                    return Ok(Node::Sequence {
                        is_flow: style == StructureStyle::Flow,
                        range: start..end,
                        items,
                    });
                }
            }
        }
    }

    fn mapping(&mut self, style: StructureStyle, start: usize) -> Result<Node, EditError> {
        let mut entries = Vec::new();
        loop {
            let (name, end) = (self.peek_name(), self.peek_end());
            let Some(key) = self.node()? else {
                let is_flow = style == StructureStyle::Flow;
                return Ok(Node::Mapping(Mapping { is_flow, range: start..end, entries }));
            };
            let Node::Scalar { range: key, .. } = key else {
                return Err(EditError::Unsafe("a key is not a plain name".to_owned()));
            };
            let value = self.node()?.unwrap_or(Node::Empty);
            entries.push(MappingEntry { name, key, value });
        }
    }

    /// The end of the next event that is not a comment.
    fn peek_end(&self) -> usize {
        let next = self.next_node();
        next.and_then(|(_, span)| span.byte_range()).map_or(0, |range| range.end)
    }

    fn peek_name(&self) -> String {
        match self.next_node() {
            Some((Event::Scalar(name, ..), _)) => name.clone().into_owned(),
            _ => String::new(),
        }
    }

    fn next_node(&self) -> Option<&(Event<'_>, Span)> {
        let ends = |event: &Event<'_>| {
            matches!(event, Event::SequenceEnd | Event::MappingEnd | Event::DocumentEnd | Event::StreamEnd)
        };
        self.events.as_slice().iter().find(|(event, _)| event.is_node() || ends(event))
    }
}

fn bytes(span: &Span) -> Result<Range<usize>, EditError> {
    span.byte_range().ok_or_else(|| EditError::Unsafe("the parser gives no places".to_owned()))
}
