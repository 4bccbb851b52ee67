//! Errors in a file that a user wrote, shown at their position.

use std::fmt;
use std::sync::Arc;

use miette::{LabeledSpan, NamedSource, SourceCode};

use crate::secret::{masked_at, masked_yaml};

/// A position in one of the texts of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Number of the text: 0 is the file, the others are `--set` options.
    pub source: u16,
    /// Index of the first byte.
    pub start: u32,
    /// Length in bytes.
    pub length: u32,
}

/// The texts that spans refer to, in the order of their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// Kind of file, as in `pubmark schema`: `workload`, `experiment`.
    subject: &'static str,
    texts: Vec<(String, Arc<str>)>,
}

impl Default for Sources {
    fn default() -> Sources {
        Sources::of("workload")
    }
}

impl Sources {
    /// Starts without texts.
    pub fn of(subject: &'static str) -> Sources {
        Sources { subject, texts: Vec::new() }
    }

    /// Adds a text under the name shown for it; returns its number. Passwords in it are masked; all positions stay the
    /// same.
    pub fn add(&mut self, name: impl Into<String>, text: impl AsRef<str>) -> u16 {
        self.texts.push((name.into(), masked_yaml(text.as_ref()).into()));
        (self.texts.len() - 1) as u16
    }
}

/// Kinds of problems; each has a stable code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// Not YAML, or larger than a limit.
    Syntax,
    /// An unknown key.
    UnknownKey,
    /// A required key is missing.
    MissingKey,
    /// A value of the wrong type, such as a list instead of a number.
    WrongKind,
    /// A quantity without a unit, or with an unknown one.
    BadUnit,
    /// A value that is not possible.
    ImpossibleValue,
    /// Two keys that exclude each other.
    Conflict,
    /// A type that is not among `device_types`.
    UnknownDeviceType,
    /// A group, subscriber or other name that does not exist.
    UnknownName,
    /// A name used twice, or one that cannot be a name.
    BadName,
    /// A topic filter that MQTT does not allow.
    BadFilter,
    /// A topic that MQTT does not allow.
    BadTopic,
    /// An unknown `{placeholder}`.
    UnknownPlaceholder,
    /// An unknown `${parameter}` or `--set` key.
    UnknownParameter,
    /// No devices.
    Empty,
    /// More than the maximum.
    TooLarge,
}

impl ProblemKind {
    /// The stable code, `workload::…`.
    pub fn code(self) -> &'static str {
        match self {
            ProblemKind::Syntax => "workload::syntax",
            ProblemKind::UnknownKey => "workload::unknown-key",
            ProblemKind::MissingKey => "workload::missing-key",
            ProblemKind::WrongKind => "workload::wrong-kind",
            ProblemKind::BadUnit => "workload::bad-unit",
            ProblemKind::ImpossibleValue => "workload::impossible-value",
            ProblemKind::Conflict => "workload::conflict",
            ProblemKind::UnknownDeviceType => "workload::unknown-device-type",
            ProblemKind::UnknownName => "workload::unknown-name",
            ProblemKind::BadName => "workload::bad-name",
            ProblemKind::BadFilter => "workload::bad-filter",
            ProblemKind::BadTopic => "workload::bad-topic",
            ProblemKind::UnknownPlaceholder => "workload::unknown-placeholder",
            ProblemKind::UnknownParameter => "workload::unknown-parameter",
            ProblemKind::Empty => "workload::empty",
            ProblemKind::TooLarge => "workload::too-large",
        }
    }
}

/// A problem before its texts are attached.
#[derive(Clone, Debug)]
pub(crate) struct Problem(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ProblemKind,
    message: String,
    labels: Vec<(Span, String)>,
    help: Option<String>,
    /// Parts shown as `*`: they may be secret.
    hidden: Vec<Span>,
}

impl Problem {
    /// A problem without a position; the first caller that knows one adds it.
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Problem {
        Problem(Box::new(Inner { kind, message: message.into(), labels: Vec::new(), help: None, hidden: Vec::new() }))
    }

    /// Adds a label at a position.
    pub fn at(mut self, span: Span, label: impl Into<String>) -> Problem {
        self.0.labels.push((span, label.into()));
        self
    }

    /// Masks a position with `*`, because its content is unknown and may be secret.
    pub fn hide(mut self, span: Span) -> Problem {
        self.0.hidden.push(span);
        self
    }

    /// Adds a label at a position unless there is one already.
    pub fn or_at(self, span: Span) -> Problem {
        if self.0.labels.is_empty() { self.at(span, "here") } else { self }
    }

    /// Adds a hint: what to write instead.
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.0.help = Some(help.into());
        self
    }

    /// Adds a hint, if there is one.
    pub fn maybe_help(mut self, help: Option<String>) -> Problem {
        self.0.help = help.or(self.0.help);
        self
    }

    /// Attaches the texts. Labels outside the text of the first label are left out, because a diagnostic shows one text.
    pub fn into_diagnostic(self, sources: &Sources) -> Diagnostic {
        let Inner { kind, message, labels, help, hidden } = *self.0;
        let shown = labels.first().map_or(0, |(span, _)| span.source);
        let mut source = sources.texts.get(usize::from(shown)).cloned();
        if let Some((_, text)) = &mut source {
            for span in hidden.iter().filter(|span| span.source == shown) {
                *text = masked_at(text, span.start as usize, span.length as usize).into();
            }
        }
        let text_bytes = source.as_ref().map_or(0, |(_, text)| text.len());
        let labels = labels
            .into_iter()
            .filter(|(span, _)| span.source == shown)
            .map(|(span, label)| {
                let start = (span.start as usize).min(text_bytes);
                let length = (span.length as usize).min(text_bytes - start);
                LabeledSpan::new(Some(label), start, length)
            })
            .collect();
        let source = source.map(|(name, text)| NamedSource::new(name, text).with_language("yaml"));
        // Every problem has a hint.
        let help = help.or_else(|| Some(format!("`pubmark schema {}` says what each key takes", sources.subject)));
        Diagnostic { kind, subject: sources.subject, message, labels, help, source }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)
    }
}

impl std::error::Error for Problem {}

impl serde::de::Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Problem {
        Problem::new(ProblemKind::WrongKind, message.to_string())
    }

    fn missing_field(field: &'static str) -> Problem {
        Problem::new(ProblemKind::MissingKey, format!("`{field}` is missing"))
    }

    fn invalid_type(found: serde::de::Unexpected<'_>, expected: &dyn serde::de::Expected) -> Problem {
        Problem::new(ProblemKind::WrongKind, format!("expected {expected}, found {}", plainly(found)))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Problem {
        Problem::new(ProblemKind::ImpossibleValue, format!("`{variant}` is not one of the choices"))
            .help(super::suggest::among(variant, expected))
    }
}

fn plainly(found: serde::de::Unexpected<'_>) -> String {
    use serde::de::Unexpected;
    match found {
        Unexpected::Map => "a mapping".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Unit => "nothing".to_owned(),
        Unexpected::Str(text) => format!("`{text}`"),
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Signed(value) => format!("`{value}`"),
        Unexpected::Unsigned(value) => format!("`{value}`"),
        Unexpected::Float(value) => format!("`{value}`"),
        other => other.to_string(),
    }
}

/// One problem of a workload or experiment file: what, where, why, and what to write instead. Print it with any handler of
/// miette.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    kind: ProblemKind,
    subject: &'static str,
    message: String,
    labels: Vec<LabeledSpan>,
    help: Option<String>,
    source: Option<NamedSource<Arc<str>>>,
}

impl Diagnostic {
    /// Kind of the problem.
    pub fn kind(&self) -> ProblemKind {
        self.kind
    }

    /// Hint: what to write instead, if known.
    pub fn hint(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The text of the first label, for instance `10 sec`.
    pub fn underlined(&self) -> Option<&str> {
        let (label, source) = (self.labels.first()?, self.source.as_ref()?);
        source.inner().get(label.offset()..label.offset() + label.len())
    }

    /// Line of the first label, from 1.
    pub fn line(&self) -> Option<usize> {
        let (label, source) = (self.labels.first()?, self.source.as_ref()?);
        let before = source.inner().as_bytes().get(..label.offset())?;
        Some(1 + before.iter().filter(|byte| **byte == b'\n').count())
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Diagnostic {}

impl miette::Diagnostic for Diagnostic {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let code = self.kind.code();
        let word = code.rsplit("::").next().unwrap_or(code);
        Some(Box::new(format!("{}::{word}", self.subject)))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}
