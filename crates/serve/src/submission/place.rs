//! Positions in the text of a submission. Most errors that are found after the text was parsed name a key or a value between
//! backticks: where this part occurs once in the text, it is the place of the error.

use std::fmt;

use pubmark_runner::spec::file::document;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::problem::{Place, Problem};

/// Adds the place to a problem that has none, or one in what messages call by an option of the command line.
pub fn located(text: &str, mut problem: Problem) -> Problem {
    let is_option = |place: &Place| place.file.as_ref().is_some_and(|file| file.starts_with("--"));
    if problem.body.place.as_ref().is_none_or(is_option) {
        let place = place(text, &problem.body.chain);
        problem.body.place = place.map(|(line, column)| Place { file: None, line, column });
    }
    problem
}

/// The same for the text of a definition that was sent as it is, which messages call by a name of its own.
pub fn in_sent_text(mut problem: Problem) -> Problem {
    problem.body.place.iter_mut().for_each(|place| place.file = None);
    problem
}

/// The line and column of the first part between backticks that the text has, innermost message first: it says what is wrong, the
/// others what was tried.
fn place(text: &str, chain: &[String]) -> Option<(u64, u64)> {
    let mut found = vec![];
    document::<Node>(text).ok()?.list("", &mut found);
    let parts = chain.iter().rev().flat_map(|message| message.split('`').skip(1).step_by(2));
    parts.filter(|part| !part.is_empty()).find_map(|part| find(&found, part))
}

/// The only place of a key, by its path or its last part, or else the only one of a value, or of one that contains the part.
fn find(found: &[Found], part: &str) -> Option<(u64, u64)> {
    // `qos: 1` is the key `qos`.
    let key = part.split_once(": ").map_or(part, |(key, _)| key);
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    only(found, |one| one.path == key)
        .or_else(|| only(found, |one| !one.path.is_empty() && last(&one.path) == last(key)))
        .or_else(|| only(found, |one| one.scalar.as_deref() == Some(part)))
        .or_else(|| only(found, |one| one.scalar.as_ref().is_some_and(|value| part.len() > 1 && value.contains(part))))
}

fn only(found: &[Found], is_it: impl Fn(&Found) -> bool) -> Option<(u64, u64)> {
    // A value that an alias stands for has no place.
    let mut those = found.iter().filter(|one| one.place.0 > 0 && is_it(one));
    let one = those.next()?;
    those.next().is_none().then_some(one.place)
}

/// Maximum length of the path of a value that is listed, bytes.
const LONGEST_PATH: usize = 256;

/// A value with its place.
struct Found {
    /// Keys that lead to it, with dots between them; empty for an entry of a list.
    path: String,
    /// The value, if it is neither a map nor a list.
    scalar: Option<String>,
    /// Line and column, from 1.
    place: (u64, u64),
}

/// Any value of a text.
enum Node {
    Scalar(String),
    Map(Vec<(String, Spanned<Node>)>),
    List(Vec<Spanned<Node>>),
}

impl Node {
    /// Adds the values below a path.
    fn list(&self, path: &str, found: &mut Vec<Found>) {
        let mut add = |path: String, node: &Spanned<Node>, below: &str| {
            let scalar = match &node.value {
                Node::Scalar(text) => Some(text.clone()),
                _ => None,
            };
            found.push(Found { path, scalar, place: (node.referenced.line(), node.referenced.column()) });
            node.value.list(below, found);
        };
        match self {
            Node::Scalar(_) => {}
            Node::Map(entries) => entries.iter().for_each(|(key, node)| {
                // No message names a longer path. A long key over many others would take their number times its length.
                if path.len() + key.len() > LONGEST_PATH {
                    return;
                }
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                add(inner.clone(), node, &inner);
            }),
            Node::List(nodes) => nodes.iter().for_each(|node| add(String::new(), node, path)),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Node;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a value")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Scalar(value.to_string()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Scalar(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
                Ok(Node::Scalar(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
                Ok(Node::Scalar(value.to_string()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Node, E> {
                Ok(Node::Scalar(value.to_owned()))
            }

            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Scalar(String::new()))
            }

            fn visit_map<Map: MapAccess<'de>>(self, mut map: Map) -> Result<Node, Map::Error> {
                let mut entries = vec![];
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Node::Map(entries))
            }

            fn visit_seq<List: SeqAccess<'de>>(self, mut list: List) -> Result<Node, List::Error> {
                let mut nodes = vec![];
                while let Some(node) = list.next_element()? {
                    nodes.push(node);
                }
                Ok(Node::List(nodes))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, message: &str) -> Option<(u64, u64)> {
        place(text, &[message.to_owned()])
    }

    #[test]
    fn a_key_or_a_value_that_a_message_names_is_found_where_it_is_the_only_one() {
        let text = "workload: hello\nprotocol: mqtt7\nload:\n  qos: 7\n  links: [lte, nowhere]\n";
        for (message, expected) in [
            ("`qos` is 7: it takes 0 to 2", Some((4, 8))),
            ("`load.qos` is 7", Some((4, 8))),
            ("`qos: 7` needs MQTT", Some((4, 8))),
            ("there is no protocol `mqtt7`", Some((2, 11))),
            ("there is no link `nowhere`", Some((5, 16))),
            ("`pubmark list links` has none, `protocol` has", Some((2, 11))),
            ("more connections than this machine has", None),
            ("`scale` is 0", None),
        ] {
            assert_eq!(of(text, message), expected, "{message}");
        }
        assert_eq!(of(r#"{"workload": "smart-hom"}"#, "found no workload `smart-hom`"), Some((1, 14)));
        // The key stands twice, the value three times.
        let twice = "workload: a\nload: {seed: 1}\nwindow: {seed: 1}\nlist: [b, b, b]\n";
        assert_eq!((of(twice, "`seed` is 1"), of(twice, "no `b`")), (None, None));
        assert_eq!(of("slo: p98<1s", "there is no figure `p98`"), Some((1, 6)));
        assert_eq!(of("a: [", "`a`"), None);
    }

    #[test]
    fn a_long_key_over_many_others_takes_no_more_memory_than_the_text() {
        let (long, many) = ("k".repeat(1_000), 1_000);
        let below: String = (0..many).map(|number| format!("  a{number}: 1\n")).collect();
        let text = format!("{long}:\n{below}qos: 7\n");
        let mut found = vec![];
        document::<Node>(&text).expect("a document").list("", &mut found);
        let bytes: usize = found.iter().map(|one| one.path.len()).sum();
        assert!(bytes <= text.len(), "{bytes} B for a text of {} B", text.len());
        assert_eq!(of(&text, "`qos` is 7"), Some((many + 2, 6)), "others are found");
    }

    #[test]
    fn what_is_wrong_comes_before_what_was_tried_and_an_option_is_no_file() {
        let text = "workload: hello\nload: {faults: ['kil:at=1s'], set: [intervall=1s]}\n";
        for (inner, expected) in
            [("`kil` is not one of the choices", (2, 17)), ("nothing is called `intervall`", (2, 37))]
        {
            let chain = vec!["failed to load the workload `hello`".to_owned(), inner.to_owned()];
            let mut problem = Problem::new(axum::http::StatusCode::BAD_REQUEST, "");
            problem.body.chain = chain;
            problem.body.place = Some(Place { file: Some("--fault".to_owned()), line: 1, column: 1 });
            let place = located(text, problem).body.place.expect("a place");
            assert_eq!((place.file, (place.line, place.column)), (None, expected), "{inner}");
        }
    }

    #[test]
    fn a_place_that_is_known_stays() {
        let mut problem = Problem::new(axum::http::StatusCode::BAD_REQUEST, "`qos` is 7");
        let known = Place { file: Some("w.yaml".to_owned()), line: 9, column: 9 };
        problem.body.place = Some(known.clone());
        assert_eq!(located("qos: 7", problem).body.place, Some(known));
    }
}
