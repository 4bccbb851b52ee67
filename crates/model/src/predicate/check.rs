//! Checks the types of a predicate against a document.

use serde_json::Value;

use super::parse::error;
use super::{Comparison, Kind, Node, Predicate, PredicateError};

/// Type of a part of a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Number,
    Text,
    Truth,
}

impl Type {
    fn shown(self) -> &'static str {
        match self {
            Type::Number => "a number",
            Type::Text => "a text",
            Type::Truth => "true or false",
        }
    }
}

impl Predicate {
    /// Checks the predicate against messages of the device group with this name.
    ///
    /// # Errors
    ///
    /// A message lacks a field, a field is not a number, text or Boolean, or types do not fit. The error has the position.
    pub fn check(&self, group: &str, messages: &[Vec<u8>]) -> Result<(), PredicateError> {
        for message in messages {
            let document = serde_json::from_slice(message).map_err(|_| {
                let reason = format!("messages of `{group}` are no JSON documents");
                error(0..self.text.len(), reason, "give the devices a `body` with JSON that its `payload` holds")
            })?;
            let found = self.type_of(&self.root, group, &document)?;
            if found != Type::Truth {
                let reason = format!("the expression is {}, not true or false", found.shown());
                return Err(error(self.root.at.clone(), reason, "compare it, for instance with `> 30`"));
            }
        }
        Ok(())
    }

    pub(super) fn type_of(&self, node: &Node, group: &str, document: &Value) -> Result<Type, PredicateError> {
        let truth = |node: &Node| match self.type_of(node, group, document)? {
            Type::Truth => Ok(Type::Truth),
            other => {
                let reason = format!("`{}` is {}, not true or false", &self.text[node.at.clone()], other.shown());
                Err(error(node.at.clone(), reason, "compare it, for instance with `> 30`"))
            }
        };
        match &node.kind {
            Kind::And(sides) | Kind::Or(sides) => truth(&sides[0]).and_then(|_| truth(&sides[1])),
            Kind::Not(side) => truth(side),
            Kind::Compare(comparison, sides) => self.comparison(*comparison, node, sides, group, document),
            Kind::Path(number) => self.field(*number, node, group, document),
            Kind::Number(_) => Ok(Type::Number),
            Kind::Text(_) => Ok(Type::Text),
            Kind::Truth(_) => Ok(Type::Truth),
        }
    }

    fn comparison(
        &self,
        comparison: Comparison,
        node: &Node,
        [left, right]: &[Node; 2],
        group: &str,
        document: &Value,
    ) -> Result<Type, PredicateError> {
        let types = [self.type_of(left, group, document)?, self.type_of(right, group, document)?];
        let shown = |node: &Node| &self.text[node.at.clone()];
        if types[0] != types[1] {
            let [first, second] = types.map(Type::shown);
            let reason = format!("`{}` is {first}, and `{}` is {second}", shown(left), shown(right));
            return Err(error(node.at.clone(), reason, "compare values of one type: numbers have no quotes, texts do"));
        }
        if types[0] == Type::Truth && comparison.is_of_order() {
            let reason = format!("`{}` is true or false, which have no order", shown(left));
            return Err(error(node.at.clone(), reason, "use `==`, `!=`, or the field alone"));
        }
        Ok(Type::Truth)
    }

    fn field(&self, number: usize, node: &Node, group: &str, document: &Value) -> Result<Type, PredicateError> {
        let mut value = document;
        for key in self.paths.keys(number) {
            let inner = value.as_object().and_then(|fields| fields.get(key));
            value = inner.ok_or_else(|| {
                let known: Vec<String> =
                    value.as_object().into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
                let hint = match known.is_empty() {
                    true => "nothing has fields there".to_owned(),
                    false => format!("there are {}", known.join(", ")),
                };
                error(node.at.clone(), format!("messages of `{group}` have no field `{key}` here"), &hint)
            })?;
        }
        match value {
            Value::Number(_) => Ok(Type::Number),
            Value::String(_) => Ok(Type::Text),
            Value::Bool(_) => Ok(Type::Truth),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                let kind = match value {
                    Value::Null => "nothing",
                    Value::Array(_) => "a list",
                    _ => "an object",
                };
                let reason = format!("`{}` is {kind} in messages of `{group}`", &self.text[node.at.clone()]);
                Err(error(node.at.clone(), reason, "name a number, a text, or a value that is true or false"))
            }
        }
    }
}
