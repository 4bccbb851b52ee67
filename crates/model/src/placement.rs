//! Placement: on which nodes of a run the clients of a group run.
//!
//! A node has labels, such as `site=edge-1`. A group is distributed over all nodes or over those with a label, or there is
//! a copy of it on each node or at each site; a site is the nodes with one value of a label. Placement does not change what
//! a client does.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

mod by_labels;
mod check;
mod choice;
mod group_nodes;

pub use by_labels::{by_labels, keys, missing};
pub use check::{Misplaced, check};
pub use choice::{PlacementChoice, apply};
pub use group_nodes::{Copies, Dealer, GroupNodes, GroupPlacements, NodeLabels};

/// Maximum number of labels of a node.
pub const MOST_LABELS: usize = 16;
/// Maximum length of a label's key or value, characters.
pub const LONGEST_WORD: usize = 63;
/// The characters allowed in a key or a value, in words.
pub const WORD_RULE: &str = "1 to 63 letters, digits, `-`, `_` and `.`, the first a letter or a digit";

/// Labels of a node: value by key.
pub type Labels = BTreeMap<String, String>;

/// A label of a node, and the form in which a placement requires it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Label {
    /// The key, such as `site`.
    pub key: String,
    /// The value, such as `edge-1`.
    pub value: String,
}

impl Label {
    /// Parses `KEY=VALUE`.
    ///
    /// # Errors
    /// The text is not a label. The error is a sentence of bounded length, whatever the text.
    pub fn parse(text: &str) -> Result<Label, String> {
        match text.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            Some((key, value)) if is_word(key) && is_word(value) => {
                Ok(Label { key: key.to_owned(), value: value.to_owned() })
            }
            _ => Err(format!(
                "`{}` is no label: KEY=VALUE such as `site=edge-1`, where each has {WORD_RULE}",
                shown(text)
            )),
        }
    }

    /// Whether a node with these labels has this label.
    pub fn is_among(&self, labels: &Labels) -> bool {
        labels.get(&self.key) == Some(&self.value)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.key, self.value)
    }
}

/// Parses the labels of a node.
///
/// # Errors
/// There are too many labels, a key occurs twice, or a text is not a label. The error is a sentence.
pub fn labels<T: AsRef<str>>(texts: &[T]) -> Result<Labels, String> {
    if texts.len() > MOST_LABELS {
        return Err(format!("{} labels are more than the {MOST_LABELS} that a node may have", texts.len()));
    }
    let mut labels = Labels::new();
    for text in texts {
        let Label { key, value } = Label::parse(text.as_ref())?;
        if let Some(other) = labels.insert(key.clone(), value) {
            return Err(format!("the label `{key}` is given twice, one value is `{other}`"));
        }
    }
    Ok(labels)
}

/// Labels as they are written, separated by spaces; empty if there are none.
pub fn written(labels: &Labels) -> String {
    let words: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    words.join(" ")
}

fn is_word(text: &str) -> bool {
    text.len() <= LONGEST_WORD
        && text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'))
}

/// The beginning of an untrusted text that fits on a line, without terminal control characters.
fn shown(text: &str) -> String {
    text.chars().take(LONGEST_WORD).flat_map(char::escape_debug).collect()
}

/// Values of a label that worker processes get in turn: `site=edge-1,edge-2,cloud`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelsInTurn {
    /// The key.
    pub key: String,
    /// Its values, at least one.
    pub values: Vec<String>,
}

impl LabelsInTurn {
    /// Parses `KEY=VALUE,VALUE…`.
    ///
    /// # Errors
    /// A part of the text is not a label. The error is a sentence.
    pub fn parse(text: &str) -> Result<LabelsInTurn, String> {
        let (key, values) = text.split_once('=').unwrap_or((text, ""));
        let labels = values.split(',').map(|value| Label::parse(&format!("{key}={value}")));
        let labels = labels.collect::<Result<Vec<Label>, String>>()?;
        Ok(LabelsInTurn { key: key.trim().to_owned(), values: labels.into_iter().map(|label| label.value).collect() })
    }

    /// The label of the worker process with this number, from 0.
    pub fn of(&self, number: usize) -> (String, String) {
        (self.key.clone(), self.values[number % self.values.len()].clone())
    }
}

impl fmt::Display for LabelsInTurn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.key, self.values.join(","))
    }
}

/// Where a group runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Placement {
    /// Each client exists once; the clients are distributed over all nodes.
    Split,
    /// Every node has a copy of the group (PSMark).
    Replicate,
    /// Each client exists once; the clients are distributed over the nodes with this label.
    On(Label),
    /// Each value of this key has a copy of the group, which is distributed over the nodes with that value.
    Each(String),
}

/// The forms of a placement, in words.
const FORMS: &str = "`split` (or `once`), `replicate` (or `every-node`), a label of nodes such as `site=edge-1`, or, for \
                     subscribers, `each` with a key such as `each site`";

impl Placement {
    /// Parses `split` or `once`, `replicate` or `every-node`, `KEY=VALUE`, `each KEY`.
    ///
    /// # Errors
    /// The text is none of these. The error is a sentence.
    pub fn parse(text: &str) -> Result<Placement, String> {
        let text = text.trim();
        let none = || format!("`{}` is no placement: there are {FORMS}", shown(text));
        match text {
            "split" | "once" => Ok(Placement::Split),
            "replicate" | "every-node" => Ok(Placement::Replicate),
            _ => match text.strip_prefix("each ").map(str::trim) {
                Some(key) if is_word(key) => Ok(Placement::Each(key.to_owned())),
                Some(_) => Err(none()),
                None if text.contains('=') => Label::parse(text).map(Placement::On),
                None => Err(none()),
            },
        }
    }

    /// The key of the labels that decide this placement, if labels do.
    pub fn key(&self) -> Option<&str> {
        match self {
            Placement::Split | Placement::Replicate => None,
            Placement::On(label) => Some(&label.key),
            Placement::Each(key) => Some(key),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::Split => formatter.write_str("split"),
            Placement::Replicate => formatter.write_str("replicate"),
            Placement::On(label) => label.fmt(formatter),
            Placement::Each(key) => write!(formatter, "each {key}"),
        }
    }
}

/// Name for all groups that are not named and have no placement for devices or subscribers.
pub const DEFAULT: &str = "default";
/// Name for all device groups that are not named.
pub const DEVICES: &str = "devices";
/// Name for all subscriber groups that are not named.
pub const SUBSCRIBERS: &str = "subscribers";

/// Placement of the groups of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placements {
    /// Placement of device groups that are not named.
    pub devices: Placement,
    /// Placement of subscriber groups that are not named.
    pub subscribers: Placement,
    /// Placements by the name of a group, or of the clients that groups share.
    pub groups: BTreeMap<String, Placement>,
}

impl Default for Placements {
    fn default() -> Placements {
        Placements { devices: Placement::Split, subscribers: Placement::Split, groups: BTreeMap::new() }
    }
}

impl Placements {
    /// Replaces a placement: of a group, of [`DEVICES`], of [`SUBSCRIBERS`], or of both ([`DEFAULT`]).
    pub fn put(&mut self, subject: &str, placement: Placement) {
        match subject {
            DEFAULT => (self.devices, self.subscribers) = (placement.clone(), placement),
            DEVICES => self.devices = placement,
            SUBSCRIBERS => self.subscribers = placement,
            group => drop(self.groups.insert(group.to_owned(), placement)),
        }
    }

    /// Placement of a device group, by its name and the name of its clients, if it shares some.
    pub fn of_devices(&self, name: &str, client: Option<&str>) -> &Placement {
        self.named(name, client).unwrap_or(&self.devices)
    }

    /// Placement of a subscriber group, by the same names.
    pub fn of_subscribers(&self, name: &str, client: Option<&str>) -> &Placement {
        self.named(name, client).unwrap_or(&self.subscribers)
    }

    fn named(&self, name: &str, client: Option<&str>) -> Option<&Placement> {
        self.groups.get(name).or_else(|| self.groups.get(client?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_label_is_two_words() {
        assert_eq!(Label::parse(" site = edge-1 ").unwrap().to_string(), "site=edge-1");
        for wrong in ["", "site", "site=", "=edge", "a b=c", "site=-edge", "site=a,b", "sité=a", "a=b=c", "\u{1b}[2J=x"]
        {
            let error = Label::parse(wrong).unwrap_err();
            assert!(error.contains("is no label") && !error.contains('\u{1b}'), "{error}");
        }
        let (most, long) = ("x".repeat(LONGEST_WORD), "x".repeat(LONGEST_WORD + 1));
        assert!(Label::parse(&format!("{most}={most}")).is_ok());
        assert!(Label::parse(&format!("site={long}")).is_err());
        assert!(Label::parse(&"x".repeat(1 << 20)).unwrap_err().len() < 300);
    }

    #[test]
    fn a_node_has_few_labels_and_each_key_once() {
        let found = labels(&["site=edge-1", "zone=a"]).unwrap();
        assert_eq!(written(&found), "site=edge-1 zone=a");
        assert!(labels(&["site=a", "site=b"]).unwrap_err().contains("`site` is given twice"));
        let many: Vec<String> = (0..=MOST_LABELS).map(|number| format!("k{number}=v")).collect();
        assert!(labels(&many[1..]).is_ok());
        assert!(labels(&many).unwrap_err().starts_with("17 labels are more than the 16"));
    }

    #[test]
    fn labels_are_dealt_out_in_turn() {
        let dealt = LabelsInTurn::parse("site=edge-1,edge-2,cloud").unwrap();
        assert_eq!(dealt.to_string(), "site=edge-1,edge-2,cloud");
        assert_eq!([0, 2, 3].map(|number| dealt.of(number).1), ["edge-1", "cloud", "edge-1"]);
        for wrong in ["site", "site=", "site=a,,b", "=a", "site=a;b"] {
            assert!(LabelsInTurn::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_placement_is_read_as_it_is_written() {
        for text in ["split", "replicate", "site=edge-1", "each site"] {
            assert_eq!(Placement::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Placement::parse("once").unwrap(), Placement::Split);
        assert_eq!(Placement::parse("every-node").unwrap(), Placement::Replicate);
        for wrong in ["", "everywhere", "each", "each ", "each a b", "site=", "edge-1"] {
            let error = Placement::parse(wrong).unwrap_err();
            assert!(error.contains("is no placement") || error.contains("is no label"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_label_text_is_read_or_refused_briefly(texts in prop::collection::vec(".{0,90}", 0..20)) {
            match labels(&texts) {
                Ok(labels) => prop_assert!(labels.len() == texts.len() && labels.len() <= MOST_LABELS),
                Err(why) => prop_assert!(why.len() < 1_000 && !why.contains(char::is_control), "{}", why),
            }
        }
    }
}
