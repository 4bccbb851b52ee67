//! Changes to the tree before it is deserialised, in this order: the published variant, `--set` options, `${parameters}`,
//! and what groups inherit from their type and from the defaults.

use super::diagnostic::{Problem, ProblemKind, Span};
use super::node::{Entry, Node, Value};
use super::{suggest, yaml};
use crate::secret;

/// Applies the published variant: each field in it replaces the field of the workload. Without one, nothing changes.
pub(crate) fn publish(root: &mut Node, published: Option<Node>) -> Result<(), Problem> {
    let Some(published) = published else { return Ok(()) };
    let Value::Map(sections) = published.value else { return Ok(()) };
    for section in sections {
        match section.key.as_str() {
            "defaults" | "placement" => replace_fields(section_of(root, &section), section.node),
            "device_types" => {
                let Value::Map(types) = section.node.value else { continue };
                for change in types {
                    let known = root.get_mut("device_types").and_then(|types| types.get_mut(&change.key));
                    let Some(known) = known else { return Err(unknown_type(root, &change.key, change.key_span)) };
                    replace_fields(known, change.node);
                }
            }
            "devices" | "subscribers" => {
                let Value::Map(groups) = section.node.value else { continue };
                for change in groups {
                    replace_fields(item(root, &section.key, &change.key, change.key_span)?, change.node);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn section_of<'a>(root: &'a mut Node, section: &Entry) -> &'a mut Node {
    if root.get(&section.key).is_none() {
        let node = Node::empty_map(section.node.span);
        root.put(Entry { key: section.key.clone(), key_span: section.key_span, node });
    }
    root.get_mut(&section.key).expect("the section was put there if it was missing")
}

fn replace_fields(target: &mut Node, change: Node) {
    if let Value::Map(fields) = change.value {
        fields.into_iter().for_each(|field| target.put(field));
    }
}

fn item<'a>(root: &'a mut Node, section: &str, name: &str, span: Span) -> Result<&'a mut Node, Problem> {
    let position = root.get(section).and_then(|list| list.position_of_item(name));
    let Some(position) = position else {
        let names = root.get(section).map(Node::item_names).unwrap_or_default();
        return Err(Problem::new(ProblemKind::UnknownName, format!("`{section}` has no group `{name}`"))
            .at(span, "no such group")
            .help(suggest::among(name, &names)));
    };
    match root.get_mut(section).map(|list| &mut list.value) {
        Some(Value::List(items)) => Ok(&mut items[position]),
        _ => Err(Problem::new(ProblemKind::WrongKind, format!("`{section}` is not a list")).at(span, "here")),
    }
}

/// The problem of an unknown device type.
pub(crate) fn unknown_type(root: &Node, name: &str, span: Span) -> Problem {
    let names: Vec<&str> = root
        .get("device_types")
        .map(|types| types.entries().iter().map(|entry| entry.key.as_str()).collect())
        .unwrap_or_default();
    let help = match names.is_empty() {
        true => "this file has no `device_types`; add the type there, or leave `type` out and give a `name`".to_owned(),
        false => suggest::among(name, &names),
    };
    Problem::new(ProblemKind::UnknownDeviceType, format!("unknown device type `{name}`"))
        .at(span, "not among `device_types`")
        .help(help)
}

/// Applies one `--set KEY=VALUE`: a parameter's name, or a dotted path such as `devices.0.payload` or `defaults.qos`.
/// `source` is the number of the text `KEY=VALUE`.
pub(crate) fn set(root: &mut Node, key: &str, value: &str, source: u16) -> Result<(), Problem> {
    let key_span = Span { source, start: 0, length: key.len() as u32 };
    // A value that is not YAML, for instance a topic that starts with `{`, is used as text.
    let plain = |_| Node {
        span: Span { source: 0, start: 0, length: value.len() as u32 },
        value: Value::Text(value.to_owned()),
    };
    let mut node = yaml::parse(value).unwrap_or_else(plain);
    node.shift(source, key.len() as u32 + 1);
    if root.get("parameters").is_some_and(|parameters| parameters.get(key).is_some()) {
        let parameters = root.get_mut("parameters").expect("it was there a line ago");
        parameters.put(Entry { key: key.to_owned(), key_span, node });
        return Ok(());
    }
    copy_inherited(root, key);
    let mut path = key.split('.').peekable();
    let first = path.next().unwrap_or_default();
    // The published variant was applied before, so a setting changes the variant that is run.
    if first == "published" || path.peek().is_none() && root.get(first).is_none() {
        return Err(unknown_setting(root, key, key_span));
    }
    if let ("device_types", Some(name)) = (first, path.peek())
        && root.get(first).is_none_or(|types| types.get(name).is_none())
    {
        return Err(unknown_type(root, name, Span { source, start: 13, length: name.len() as u32 }));
    }
    let mut walked = first.to_owned();
    let mut start = first.len() as u32 + 1;
    let mut target = section_of(root, &Entry { key: first.to_owned(), key_span, node: Node::empty_map(key_span) });
    while let Some(step) = path.next() {
        let step_span = Span { source, start, length: step.len() as u32 };
        start += step.len() as u32 + 1;
        if path.peek().is_none() {
            return put_at(target, &walked, Entry { key: step.to_owned(), key_span: step_span, node });
        }
        target = step_into(target, &walked, step, step_span)?;
        walked = format!("{walked}.{step}");
    }
    // The path is one key of the top level that exists: its value is replaced.
    *target = node;
    Ok(())
}

/// For `devices.GROUP.FIELD.…`: copies the inherited field to the group, so that a part of it can be set.
fn copy_inherited(root: &mut Node, key: &str) {
    let mut steps = key.split('.');
    let (Some("devices"), Some(name), Some(field), Some(_)) = (steps.next(), steps.next(), steps.next(), steps.next())
    else {
        return;
    };
    let Some(devices) = root.get("devices") else { return };
    let Some(group) = devices.position_of_item(name).and_then(|position| devices.items().get(position)) else { return };
    if group.get(field).is_some() {
        return;
    }
    let of_type = |name: &str| root.get("device_types")?.get(name);
    let from_type = group.get("type").and_then(Node::text).and_then(of_type);
    let layers = [from_type, root.get("defaults")];
    let inherited = layers.into_iter().flatten().flat_map(Node::entries).find(|entry| entry.key == field).cloned();
    let Some(inherited) = inherited else { return };
    if let Ok(group) = item(root, "devices", name, Span::default()) {
        group.put(inherited);
    }
}

fn put_at(target: &mut Node, walked: &str, entry: Entry) -> Result<(), Problem> {
    match target.value {
        Value::Map(_) => {
            target.put(entry);
            Ok(())
        }
        Value::List(_) => {
            let (name, span) = (entry.key.clone(), entry.key_span);
            *list_item(target, walked, &name, span)? = entry.node;
            Ok(())
        }
        _ => Err(not_below(target, walked, entry.key_span)),
    }
}

fn step_into<'a>(target: &'a mut Node, walked: &str, step: &str, span: Span) -> Result<&'a mut Node, Problem> {
    match target.value {
        Value::Map(_) => {
            let entry = Entry { key: step.to_owned(), key_span: span, node: Node::empty_map(span) };
            Ok(section_of(target, &entry))
        }
        Value::List(_) => list_item(target, walked, step, span),
        _ => Err(not_below(target, walked, span)),
    }
}

fn list_item<'a>(list: &'a mut Node, walked: &str, name: &str, span: Span) -> Result<&'a mut Node, Problem> {
    let names = list.item_names();
    match (list.position_of_item(name), &mut list.value) {
        (Some(position), Value::List(items)) => Ok(&mut items[position]),
        _ => Err(Problem::new(ProblemKind::UnknownName, format!("`{walked}` has no item `{name}`"))
            .at(span, "no such item")
            .help(suggest::among(name, &names))),
    }
}

fn not_below(target: &Node, walked: &str, span: Span) -> Problem {
    Problem::new(ProblemKind::UnknownKey, format!("`{walked}` is {}: nothing lies below it", target.kind()))
        .at(span, "nothing here")
        .help(format!("set `{walked}` itself, for instance `--set '{walked}={{…}}'` for a full form"))
}

fn unknown_setting(root: &Node, key: &str, span: Span) -> Problem {
    let parameters: Vec<&str> = root
        .get("parameters")
        .map(|parameters| parameters.entries().iter().map(|entry| entry.key.as_str()).collect())
        .unwrap_or_default();
    let paths = "paths reach everything else, for instance `defaults.qos=1`, `devices.0.payload=1KB`";
    let help = match parameters.is_empty() {
        true => format!("this workload has no parameters; {paths}"),
        false => format!("{}; {paths}", suggest::among(key, &parameters)),
    };
    Problem::new(ProblemKind::UnknownParameter, format!("this workload has nothing called `{key}` to set"))
        .at(span, "not a parameter")
        .help(help)
}

/// The parameters and their values.
pub(crate) fn parameters(root: &Node) -> Result<Vec<(String, Node)>, Problem> {
    let mut parameters: Vec<(String, Node)> = Vec::new();
    for entry in root.get("parameters").map(Node::entries).unwrap_or_default() {
        let node = entry.node.get("default").unwrap_or(&entry.node);
        if matches!(node.value, Value::Map(_) | Value::List(_) | Value::Null) {
            return Err(Problem::new(
                ProblemKind::WrongKind,
                format!("parameter `{}` is {}, not a single value", entry.key, node.kind()),
            )
            .at(entry.key_span, "here")
            .help("write `NAME: VALUE`, or `NAME: {default: VALUE, about: …}`"));
        }
        parameters.push((entry.key.clone(), node.clone()));
    }
    Ok(parameters)
}

/// Names of the parameters that are used in passwords, in any variant of the file.
pub(crate) fn secret_parameters(root: &Node) -> Vec<String> {
    let mut names = Vec::new();
    collect_secret_parameters(root, false, &mut names);
    names
}

fn collect_secret_parameters(node: &Node, is_secret: bool, names: &mut Vec<String>) {
    match &node.value {
        Value::Text(text) if is_secret => {
            let after = text.split("${").skip(1);
            names.extend(after.filter_map(|rest| rest.split_once('}')).map(|(name, _)| name.to_owned()));
        }
        Value::List(items) => items.iter().for_each(|item| collect_secret_parameters(item, is_secret, names)),
        Value::Map(entries) => entries
            .iter()
            .for_each(|entry| collect_secret_parameters(&entry.node, is_secret || secret::is_named(&entry.key), names)),
        _ => {}
    }
}

/// Replaces `${name}` in every text by the parameter's value: a text that consists only of it becomes that value.
pub(crate) fn substitute(root: &mut Node) -> Result<(), Problem> {
    let parameters = parameters(root)?;
    let Value::Map(entries) = &mut root.value else { return Ok(()) };
    entries
        .iter_mut()
        .filter(|entry| entry.key != "parameters")
        .try_for_each(|entry| substitute_below(&mut entry.node, &parameters))
}

/// As [`substitute`], in one part of the tree.
pub(crate) fn substitute_below(node: &mut Node, parameters: &[(String, Node)]) -> Result<(), Problem> {
    match &mut node.value {
        Value::List(items) => items.iter_mut().try_for_each(|item| substitute_below(item, parameters)),
        Value::Map(entries) => entries.iter_mut().try_for_each(|entry| substitute_below(&mut entry.node, parameters)),
        Value::Text(text) if text.contains("${") => {
            *node = filled(text, node.span, parameters)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn filled(text: &str, span: Span, parameters: &[(String, Node)]) -> Result<Node, Problem> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else {
            return Err(Problem::new(ProblemKind::UnknownParameter, "`${` without its `}`")
                .at(span, "here")
                .help("write `${NAME}`"));
        };
        let Some((_, node)) = parameters.iter().find(|(known, _)| known == name) else {
            let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
            return Err(Problem::new(ProblemKind::UnknownParameter, format!("unknown parameter `{name}`"))
                .at(span, "not among `parameters`")
                .help(suggest::among(name, &names)));
        };
        if before.is_empty() && behind.is_empty() && out.is_empty() {
            return Ok(node.clone());
        }
        out.push_str(before);
        match &node.value {
            Value::Text(value) => out.push_str(value),
            Value::Integer(value) => out.push_str(&value.to_string()),
            Value::Float(value) => out.push_str(&value.to_string()),
            Value::Bool(value) => out.push_str(&value.to_string()),
            Value::Null | Value::List(_) | Value::Map(_) => {}
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(Node { span, value: Value::Text(out) })
}

/// Copies to every device group the fields of its type and of the defaults that it does not have.
pub(crate) fn inherit(root: &mut Node) -> Result<(), Problem> {
    let defaults = root.get("defaults").cloned();
    let types = root.get("device_types").cloned();
    let Some(Value::List(groups)) = root.get("devices").map(|devices| devices.value.clone()) else { return Ok(()) };
    let mut merged = Vec::with_capacity(groups.len());
    for mut group in groups {
        if let Some(Node { value: Value::Text(name), span }) = group.get("type").cloned() {
            let known = types.as_ref().and_then(|types| types.get(&name));
            let Some(known) = known else { return Err(unknown_type(root, &name, span)) };
            take_missing(&mut group, known);
        }
        if let Some(defaults) = &defaults {
            take_missing(&mut group, defaults);
        }
        merged.push(group);
    }
    if let Some(devices) = root.get_mut("devices") {
        devices.value = Value::List(merged);
    }
    Ok(())
}

fn take_missing(group: &mut Node, from: &Node) {
    // A group that defines its rate inherits none: neither by the alternative key, nor beside a trace, a flood or a
    // reaction.
    let paced = group.get("every").or(group.get("rate")).is_some() || group.get("arrival").is_some_and(has_own_pace);
    for entry in from.entries() {
        let pace = matches!(entry.key.as_str(), "every" | "rate");
        if group.get(&entry.key).is_none() && !(pace && paced) {
            group.put(entry.clone());
        }
    }
}

fn has_own_pace(arrival: &Node) -> bool {
    arrival.text() == Some("flood") || arrival.get("trace").or(arrival.get("reaction_to")).is_some()
}
