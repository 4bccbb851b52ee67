//! Predicates as selectors of the Java Message Service (Jakarta Messaging 3.1, §3.8.1), which AMQP 1.0 brokers evaluate. A
//! selector has no access to payloads, only to properties: publishers send the fields that predicates use as properties in
//! addition to the payload.

use serde_json::Value;

use super::check::Type;
use super::document::{Paths, Scalar, Unreadable};
use super::parse::error;
use super::{Comparison, Kind, Node, Predicate, PredicateError};

/// Prefix of all property names, so that none is a keyword of the selector language.
const PREFIX: &str = "payload";
/// Separator between field names in a property name: a valid letter of identifiers that few fields contain.
const SEPARATOR: char = '$';
/// Hint for a predicate that cannot be a selector.
const AT_CLIENT: &str = "the subscribers can filter for themselves: `at: client`";

impl Predicate {
    /// The predicate as a selector, which is true for the properties of [`SelectorFields`] if the predicate is true for the
    /// document. A missing property decides nothing by itself (as NULL in SQL), like a missing field in a predicate.
    ///
    /// # Errors
    /// A part cannot be expressed as a selector. The error has the position.
    pub fn selector(&self) -> Result<String, PredicateError> {
        let mut text = String::new();
        self.append_condition(&self.root, &mut text)?;
        Ok(text)
    }

    /// Checks that the predicate can be a selector for messages with this document, which [`Predicate::check`] accepted.
    ///
    /// # Errors
    /// A part cannot be expressed as a selector. The error has the position.
    pub fn check_selector(&self, message: &[u8]) -> Result<(), PredicateError> {
        self.selector()?;
        let document = serde_json::from_slice(message).unwrap_or(Value::Null);
        self.check_order(&self.root, &document)
    }

    /// Selectors can order only numbers.
    fn check_order(&self, node: &Node, document: &Value) -> Result<(), PredicateError> {
        match &node.kind {
            Kind::And(sides) | Kind::Or(sides) => sides.iter().try_for_each(|side| self.check_order(side, document)),
            Kind::Not(side) => self.check_order(side, document),
            Kind::Compare(comparison, sides) if comparison.is_of_order() => {
                match self.type_of(&sides[0], "", document) {
                    Ok(Type::Text) => Err(no_order(node)),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Appends a part that is a Boolean.
    fn append_condition(&self, node: &Node, out: &mut String) -> Result<(), PredicateError> {
        match &node.kind {
            Kind::And(sides) => self.append_pair(sides, " AND ", out),
            Kind::Or(sides) => self.append_pair(sides, " OR ", out),
            Kind::Not(side) => {
                out.push_str("NOT ");
                self.append_in_parentheses(side, out)
            }
            Kind::Compare(comparison, sides) => {
                let has_text = sides.iter().any(|side| matches!(side.kind, Kind::Text(_)));
                if comparison.is_of_order() && has_text {
                    return Err(no_order(node));
                }
                self.append_value(&sides[0], out)?;
                out.push_str(match comparison {
                    Comparison::Equal => " = ",
                    Comparison::Unequal => " <> ",
                    Comparison::Less => " < ",
                    Comparison::AtMost => " <= ",
                    Comparison::Greater => " > ",
                    Comparison::AtLeast => " >= ",
                });
                self.append_value(&sides[1], out)
            }
            Kind::Path(_) => {
                self.append_value(node, out)?;
                out.push_str(" = TRUE");
                Ok(())
            }
            Kind::Truth(truth) => {
                out.push_str(if *truth { "1 = 1" } else { "1 = 0" });
                Ok(())
            }
            Kind::Number(_) | Kind::Text(_) => Err(cannot(node, "a condition that is no truth value")),
        }
    }

    fn append_pair(&self, sides: &[Node; 2], between: &str, out: &mut String) -> Result<(), PredicateError> {
        self.append_in_parentheses(&sides[0], out)?;
        out.push_str(between);
        self.append_in_parentheses(&sides[1], out)
    }

    fn append_in_parentheses(&self, node: &Node, out: &mut String) -> Result<(), PredicateError> {
        out.push('(');
        self.append_condition(node, out)?;
        out.push(')');
        Ok(())
    }

    /// Appends an operand of a comparison.
    fn append_value(&self, node: &Node, out: &mut String) -> Result<(), PredicateError> {
        match &node.kind {
            Kind::Path(number) => match property_name(&self.paths, *number) {
                Some(name) => out.push_str(&name),
                None => {
                    return Err(cannot(node, "a field whose name has other characters than letters, digits and `_`"));
                }
            },
            // Never -0, which Java orders below 0. A decimal point or an exponent makes it a 64-bit number, like the
            // properties.
            Kind::Number(number) => out.push_str(&format!("{:?}", number + 0.0)),
            Kind::Text(text) => out.push_str(&format!("'{}'", text.replace('\'', "''"))),
            Kind::Truth(truth) => out.push_str(if *truth { "TRUE" } else { "FALSE" }),
            Kind::And(_) | Kind::Or(_) | Kind::Not(_) | Kind::Compare(..) => {
                return Err(cannot(node, "a comparison with the result of another"));
            }
        }
        Ok(())
    }
}

fn cannot(node: &Node, what: &str) -> PredicateError {
    error(node.at.clone(), format!("the broker cannot filter by this: a selector has no word for {what}"), AT_CLIENT)
}

fn no_order(node: &Node) -> PredicateError {
    cannot(node, "an order of texts")
}

/// `payload$air$humidity`; `None` if it is not a Java identifier, which property names have to be.
fn property_name(paths: &Paths, number: usize) -> Option<String> {
    let mut name = PREFIX.to_owned();
    for key in paths.keys(number) {
        let is_word = !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        is_word.then_some(())?;
        name.push(SEPARATOR);
        name.push_str(key);
    }
    Some(name)
}

/// The fields that selectors use, and the names of their properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorFields {
    /// For each predicate, the names by number of the path; `None` for a path that another predicate already has.
    predicates: Vec<(Paths, Vec<Option<String>>)>,
}

impl SelectorFields {
    /// The fields of these predicates.
    pub fn of<'a>(predicates: impl Iterator<Item = &'a Predicate>) -> SelectorFields {
        let mut known = std::collections::HashSet::new();
        let mut row = |predicate: &Predicate| {
            let name = |number| property_name(&predicate.paths, number).filter(|name| known.insert(name.clone()));
            let names = (0..predicate.paths.count()).map(name).collect();
            (predicate.paths.clone(), names)
        };
        SelectorFields { predicates: predicates.map(&mut row).collect() }
    }

    /// Calls `visit` with the name and the value of each property of a document. A missing field has no property.
    ///
    /// # Errors
    /// The document is not JSON.
    pub fn visit(&self, document: &[u8], mut visit: impl FnMut(&str, &Scalar<'_>)) -> Result<(), Unreadable> {
        for (paths, names) in &self.predicates {
            let values = paths.read(document)?;
            for (number, name) in names.iter().enumerate() {
                if let (Some(name), Ok(value)) = (name, values.get(number)) {
                    visit(name, &value);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn selector(text: &str) -> Result<String, PredicateError> {
        Predicate::parse(text).unwrap().selector()
    }

    #[test]
    fn predicates_become_selectors() {
        for (text, expected) in [
            ("payload.temperature > 30", "payload$temperature > 30.0"),
            ("30 <= payload.temperature", "30.0 <= payload$temperature"),
            ("payload.n < -2.5e0 && payload.n >= -0", "(payload$n < -2.5) AND (payload$n >= 0.0)"),
            ("payload.n != 1e300", "payload$n <> 1e300"),
            (r#"payload.room == "a 'b' \\ c""#, r"payload$room = 'a ''b'' \ c'"),
            (r#"payload["air"].a_b == 'é'"#, "payload$air$a_b = 'é'"),
            ("payload.door", "payload$door = TRUE"),
            ("!payload.door || payload.door == false", "(NOT (payload$door = TRUE)) OR (payload$door = FALSE)"),
            ("payload.a == payload.b", "payload$a = payload$b"),
            ("true && !(false || payload.x == 3)", "(1 = 1) AND (NOT ((1 = 0) OR (payload$x = 3.0)))"),
            // Keywords of the selector language cannot be property names.
            ("payload.not == 1 && payload.in", "(payload$not = 1.0) AND (payload$in = TRUE)"),
        ] {
            assert_eq!(selector(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn predicates_beyond_selectors_are_refused_at_their_position() {
        for (text, underlined, reason) in [
            ("payload.n > 1 && payload.room < 'hall'", "payload.room < 'hall'", "an order of texts"),
            (r#"payload["a b"] == 1"#, r#"payload["a b"]"#, "other characters than letters"),
            (r#"payload.a["é"]"#, r#"payload.a["é"]"#, "other characters than letters"),
            ("payload.a == (payload.n > 3)", "payload.n > 3", "the result of another"),
            ("payload.a != !payload.b", "!payload.b", "the result of another"),
        ] {
            let error = selector(text).unwrap_err();
            assert_eq!(&text[error.at.clone()], underlined, "{text}: {error:?}");
            assert!(error.reason.contains(reason) && error.hint.contains("`at: client`"), "{text}: {error:?}");
        }
        let two = Predicate::parse("payload.a < payload.b").unwrap();
        assert_eq!(two.check_selector(br#"{"a": 1, "b": 2}"#), Ok(()));
        let error = two.check_selector(br#"{"a": "x", "b": "y"}"#).unwrap_err();
        assert!(error.reason.contains("an order of texts"), "{error:?}");
    }

    #[test]
    fn each_field_is_a_property_once_with_its_own_type() {
        let texts =
            ["payload.n > 1 && payload.room == 'hall'", "payload.air.wet || payload.n < 9 || payload.none == 3"];
        let predicates = texts.map(|text| Predicate::parse(text).unwrap());
        let fields = SelectorFields::of(predicates.iter());
        let found = |document: &[u8]| {
            let mut found = vec![];
            fields.visit(document, |name, value| found.push(format!("{name}={value:?}"))).map(|()| found)
        };
        let all = found(br#"{"n": 5, "room": "h\"all", "air": {"wet": false}, "none": null, "other": 7}  "#).unwrap();
        assert_eq!(all, ["payload$n=Number(5.0)", "payload$room=Text(\"h\\\"all\")", "payload$air$wet=Truth(false)"]);
        assert_eq!(found(b"no JSON"), Err(Unreadable));
    }
}
