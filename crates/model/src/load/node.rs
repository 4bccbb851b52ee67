//! A workload file as a tree with the position of each value, so that variants, parameters and `--set` can change it before
//! it is deserialised.

use super::diagnostic::Span;

/// A value and its position.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Position of the value.
    pub span: Span,
    /// The value.
    pub value: Value,
}

/// Kinds of values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Nothing, `~`, `null`.
    Null,
    /// `true`, `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a point.
    Float(f64),
    /// Any other scalar.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The key.
    pub key: String,
    /// Position of the key.
    pub key_span: Span,
    /// Its value.
    pub node: Node,
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.value == other.value
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.key == other.key && self.node == other.node
    }
}

/// Keys that are alternatives: setting one removes the other.
const ALTERNATIVES: [(&str, &str); 1] = [("every", "rate")];

impl Node {
    /// An empty mapping at `span`.
    pub fn empty_map(span: Span) -> Node {
        Node { span, value: Value::Map(Vec::new()) }
    }

    /// The entries of a mapping; none for anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none for anything else.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The value of `key`, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// As [`Node::get`], mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Map(entries) => entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node),
            _ => None,
        }
    }

    /// The text, if this is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Removes a key from a mapping.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let Value::Map(entries) = &mut self.value else { return None };
        let position = entries.iter().position(|entry| entry.key == key)?;
        Some(entries.remove(position).node)
    }

    /// Adds an entry to a mapping; it replaces the one with its key and the alternative key. A null removes the key. No
    /// effect on anything but a mapping.
    pub fn put(&mut self, entry: Entry) {
        for (one, other) in ALTERNATIVES {
            if entry.key == one {
                self.remove(other);
            } else if entry.key == other {
                self.remove(one);
            }
        }
        let Value::Map(entries) = &mut self.value else { return };
        match entries.iter().position(|known| known.key == entry.key) {
            Some(position) if entry.node.value == Value::Null => {
                entries.remove(position);
            }
            Some(position) => entries[position] = entry,
            None => entries.push(entry),
        }
    }

    /// The position of a list's item by its `name` (or, failing that, its `type`), or by its number from 0.
    pub fn position_of_item(&self, name: &str) -> Option<usize> {
        let named = |item: &Node| item.get("name").or_else(|| item.get("type")).and_then(Node::text) == Some(name);
        let items = self.items();
        items.iter().position(named).or_else(|| name.parse::<usize>().ok().filter(|position| *position < items.len()))
    }

    /// The names by which [`Node::position_of_item`] finds the items of a list.
    pub fn item_names(&self) -> Vec<String> {
        let name = |(position, item): (usize, &Node)| match item.get("name").or_else(|| item.get("type")) {
            Some(Node { value: Value::Text(name), .. }) => name.clone(),
            _ => position.to_string(),
        };
        self.items().iter().enumerate().map(name).collect()
    }

    /// Shifts every position by `bytes` and to another text.
    pub fn shift(&mut self, source: u16, bytes: u32) {
        let shift = |span: &mut Span| {
            span.source = source;
            span.start += bytes;
        };
        shift(&mut self.span);
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.shift(source, bytes)),
            Value::Map(entries) => entries.iter_mut().for_each(|entry| {
                shift(&mut entry.key_span);
                entry.node.shift(source, bytes);
            }),
            _ => {}
        }
    }

    /// Name of the kind of value in messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a truth value",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}
