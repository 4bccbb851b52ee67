//! The axis `system` of a file: systems that pubmark starts, and endpoints of systems that already run.

use super::axes::RawAxes;
use super::axis_value::{judged, level, limit, nothing, quoted, switch, topology};
use super::endpoint::EndpointChoice;
use super::raw::RawSystem;
use super::{Judge, Word};
use crate::load::diagnostic::{Problem, ProblemKind, Span};
use crate::load::shape::{AnyText, Form, OneOrMany, Spanned, Text};
use crate::load::value::impossible;
use crate::secret::without_password;
use crate::topology::Topology;

/// Names of the back ends.
const BACK_ENDS: [&str; 2] = ["process", "container"];

/// A system with its own settings. Settings that it does not give come from the axes. pubmark starts it, or it already runs
/// at an endpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SystemChoice {
    /// Name in the report, unique.
    pub label: String,
    /// A built-in system or the path of a definition; for an endpoint, the system that is assumed to run there, if given.
    pub system: Option<String>,
    /// Endpoint of a system that already runs; `None` for a system that pubmark starts.
    pub endpoint: Option<EndpointChoice>,
    /// Its protocol.
    pub protocol: Option<String>,
    /// Its profile.
    pub profile: Option<String>,
    /// Its delivery level.
    pub qos: Option<u8>,
    /// Its limits, as written; `none` for none.
    pub limit: Option<String>,
    /// Its brokers.
    pub topology: Option<Topology>,
    /// Whether connections to it are encrypted.
    pub tls: Option<bool>,
    /// `process` or `container`.
    pub back_end: Option<String>,
    /// Node that starts it.
    pub node: Option<String>,
    /// Image of its container.
    pub image: Option<String>,
}

impl SystemChoice {
    /// A system without settings: its label is its name, or the name of its file.
    pub fn named(system: &str) -> SystemChoice {
        let file = system.rsplit('/').next().unwrap_or(system);
        let label = file.strip_suffix(".yaml").unwrap_or(file);
        SystemChoice { label: label.to_owned(), system: Some(system.to_owned()), ..SystemChoice::default() }
    }

    /// An endpoint under its label.
    pub fn at(label: &str, url: &str) -> SystemChoice {
        let endpoint = Some(EndpointChoice::at(url));
        SystemChoice { label: label.to_owned(), endpoint, ..SystemChoice::default() }
    }

    /// The system as YAML: its name alone if nothing else is set, otherwise a mapping.
    pub(super) fn to_yaml(&self) -> String {
        if let Some(system) = self.system.as_ref().filter(|system| *self == SystemChoice::named(system)) {
            return quoted(system);
        }
        let topology = self.topology.map(|topology| topology.to_string());
        let tls = self.tls.map(|tls| tls.to_string());
        let qos = self.qos.map(|level| level.to_string());
        let mut fields = vec![
            ("system", self.system.as_ref()),
            ("label", Some(&self.label)),
            ("protocol", self.protocol.as_ref()),
            ("profile", self.profile.as_ref()),
            ("qos", qos.as_ref()),
            ("limit", self.limit.as_ref()),
            ("topology", topology.as_ref()),
            ("back_end", self.back_end.as_ref()),
            ("node", self.node.as_ref()),
            ("image", self.image.as_ref()),
            ("tls", tls.as_ref()),
        ];
        let insecure = "true".to_owned();
        if let Some(endpoint) = &self.endpoint {
            fields.extend([
                ("endpoint", Some(&endpoint.url)),
                ("subscribe_endpoint", endpoint.subscribe_endpoint.as_ref()),
                ("node_exporter", endpoint.node_exporter.as_ref()),
                ("user", endpoint.user.as_ref()),
                ("password_env", endpoint.password_env.as_ref()),
                ("password_file", endpoint.password_file.as_ref()),
                ("tls_ca", endpoint.tls_ca.as_ref()),
                ("tls_insecure", endpoint.tls_insecure.then_some(&insecure)),
                ("tls_cert", endpoint.tls_cert.as_ref()),
                ("tls_key", endpoint.tls_key.as_ref()),
            ]);
        }
        let fields: Vec<String> =
            fields.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", quoted(value?)))).collect();
        format!("{{{}}}", fields.join(", "))
    }
}

/// The values of the axis; each needs a unique name.
pub(super) fn systems(
    raw: &Spanned<OneOrMany<Form<Text<AnyText>, Spanned<RawSystem>>>>,
    axes: &RawAxes,
    judge: Judge<'_>,
) -> Result<Vec<SystemChoice>, Problem> {
    if raw.value.0.is_empty() {
        return Err(nothing(raw.span));
    }
    let mut found: Vec<SystemChoice> = vec![];
    for form in &raw.value.0 {
        let (choice, span) = match form {
            Form::Short(text) => {
                judged(judge, Word::System, &text.text, text.span)?;
                (SystemChoice::named(&text.text), text.span)
            }
            Form::Full(full) => (system(full, axes, judge)?, full.span),
        };
        if found.iter().any(|known| known.label == choice.label) {
            return Err(Problem::new(ProblemKind::BadName, format!("`{}` is given twice", choice.label))
                .at(span, "again")
                .help("tell them apart with `label`, for instance `{system: mosquitto, label: second}`"));
        }
        found.push(choice);
    }
    Ok(found)
}

/// A key of a system, and the position of its value if it is given.
type SetKey = (&'static str, Option<Span>);

fn span<K>(text: &Option<Text<K>>) -> Option<Span> {
    text.as_ref().map(|text| text.span)
}

/// Keys that only a system that pubmark starts may have.
fn of_started(raw: &RawSystem) -> [SetKey; 7] {
    [
        ("profile", span(&raw.profile)),
        ("limit", span(&raw.limit)),
        ("topology", span(&raw.topology)),
        ("tls", span(&raw.tls)),
        ("back_end", span(&raw.back_end)),
        ("node", span(&raw.node)),
        ("image", span(&raw.image)),
    ]
}

/// Keys that only a system that already runs may have.
fn of_running(raw: &RawSystem) -> [SetKey; 9] {
    [
        ("subscribe_endpoint", span(&raw.subscribe_endpoint)),
        ("node_exporter", span(&raw.node_exporter)),
        ("user", span(&raw.user)),
        ("password_env", span(&raw.password_env)),
        ("password_file", span(&raw.password_file)),
        ("tls_ca", span(&raw.tls_ca)),
        ("tls_insecure", span(&raw.tls_insecure)),
        ("tls_cert", span(&raw.tls_cert)),
        ("tls_key", span(&raw.tls_key)),
    ]
}

fn text(text: &Option<Text<AnyText>>) -> Option<String> {
    text.as_ref().map(|text| text.text.clone())
}

fn system(full: &Spanned<RawSystem>, axes: &RawAxes, judge: Judge<'_>) -> Result<SystemChoice, Problem> {
    let raw = &full.value;
    if let Some(system) = &raw.system {
        judged(judge, Word::System, &system.text, system.span)?;
    }
    check_keys(full)?;
    for (name, own, axis) in [
        ("protocol", span(&raw.protocol), axes.protocol.is_some()),
        ("profile", span(&raw.profile), axes.profile.is_some()),
        ("qos", span(&raw.qos), axes.qos.is_some()),
        ("limit", span(&raw.limit), axes.limit.is_some()),
        ("topology", span(&raw.topology), axes.topology.is_some()),
        ("tls", span(&raw.tls), axes.tls.is_some()),
    ] {
        if let Some(span) = own.filter(|_| axis) {
            return Err(Problem::new(ProblemKind::Conflict, format!("`{name}` is given by a system and by an axis"))
                .at(span, "here")
                .help(format!("give `{name}` to each system, or make it an axis")));
        }
    }
    if let Some(protocol) = &raw.protocol {
        judged(judge, Word::Protocol, &protocol.text, protocol.span)?;
    }
    if let Some(back_end) = raw.back_end.as_ref().filter(|text| !BACK_ENDS.contains(&text.text.as_str())) {
        return Err(impossible(format!("`{}` is not a back end", back_end.text))
            .at(back_end.span, "here")
            .help("write `process` or `container`"));
    }
    Ok(SystemChoice {
        label: label(full)?,
        system: text(&raw.system),
        endpoint: raw.endpoint.as_ref().map(|url| endpoint(raw, url, judge)).transpose()?,
        protocol: text(&raw.protocol),
        profile: text(&raw.profile),
        qos: raw.qos.as_ref().map(level).transpose()?,
        limit: raw.limit.as_ref().map(|text| limit(text, judge)).transpose()?,
        topology: raw.topology.as_ref().map(topology).transpose()?,
        tls: raw.tls.as_ref().map(switch).transpose()?,
        back_end: text(&raw.back_end),
        node: text(&raw.node),
        image: text(&raw.image),
    })
}

/// The label, or else the system's name. An endpoint needs a label, because it has no name for the report.
fn label(full: &Spanned<RawSystem>) -> Result<String, Problem> {
    let raw = &full.value;
    if raw.system.is_none() && raw.endpoint.is_none() {
        return Err(Problem::new(ProblemKind::MissingKey, "neither `system` nor `endpoint` is given")
            .at(full.span, "here")
            .help("`system: mosquitto` is started, `endpoint: mqtt://host:1883` runs already"));
    }
    match (&raw.label, raw.system.as_ref().filter(|_| raw.endpoint.is_none())) {
        (Some(label), _) if label.value.trim().is_empty() => {
            Err(Problem::new(ProblemKind::BadName, "a label without letters").at(label.span, "empty"))
        }
        (Some(label), _) => Ok(label.value.trim().to_owned()),
        (None, Some(system)) => Ok(SystemChoice::named(&system.text).label),
        (None, None) => Err(Problem::new(ProblemKind::MissingKey, "an endpoint has no name for the report")
            .at(full.span, "here")
            .help("add for instance `label: ours`")),
    }
}

/// Refuses keys that belong to the other kind of system.
fn check_keys(full: &Spanned<RawSystem>) -> Result<(), Problem> {
    let raw = &full.value;
    let given = |keys: &[SetKey]| keys.iter().find_map(|(name, span)| Some((*name, (*span)?)));
    if raw.endpoint.is_some() {
        let Some((name, span)) = given(&of_started(raw)) else { return Ok(()) };
        return Err(Problem::new(
            ProblemKind::Conflict,
            format!("`{name}` is for a system that pubmark starts, and `endpoint` names one that runs already"),
        )
        .at(span, "here")
        .help(match name {
            "tls" => "an endpoint says it with its scheme, such as `mqtts://`",
            _ => "leave one of the two out",
        }));
    }
    let Some((name, span)) = given(&of_running(raw)) else { return Ok(()) };
    Err(Problem::new(ProblemKind::Conflict, format!("`{name}` is for a system that runs already, and none is named"))
        .at(span, "here")
        .help("`endpoint: URL` names one; or leave this out"))
}

fn endpoint(raw: &RawSystem, url: &Text<AnyText>, judge: Judge<'_>) -> Result<EndpointChoice, Problem> {
    for url in [Some(url), raw.subscribe_endpoint.as_ref(), raw.node_exporter.as_ref()].into_iter().flatten() {
        if without_password(&url.text) != url.text {
            return Err(Problem::new(
                ProblemKind::Conflict,
                "the URL holds a password, and an experiment's folder would store it for others to read",
            )
            .at(url.span, "here")
            .help("beside `endpoint`, `user: NAME` and `password_env: VARIABLE` take it from the environment"));
        }
    }
    check_log_in(raw)?;
    for url in [Some(url), raw.subscribe_endpoint.as_ref()].into_iter().flatten() {
        judged(judge, Word::Endpoint, &url.text, url.span)?;
    }
    Ok(EndpointChoice {
        url: url.text.clone(),
        subscribe_endpoint: text(&raw.subscribe_endpoint),
        node_exporter: text(&raw.node_exporter),
        user: text(&raw.user),
        password_env: text(&raw.password_env),
        password_file: text(&raw.password_file),
        tls_ca: text(&raw.tls_ca),
        tls_insecure: raw.tls_insecure.as_ref().map_or(Ok(false), switch)?,
        tls_cert: text(&raw.tls_cert),
        tls_key: text(&raw.tls_key),
    })
}

/// Refuses credentials that exclude each other, or that require another key.
fn check_log_in(raw: &RawSystem) -> Result<(), Problem> {
    let [user, env, file] = [
        ("user", span(&raw.user)),
        ("password_env", span(&raw.password_env)),
        ("password_file", span(&raw.password_file)),
    ];
    let [cert, key] = [("tls_cert", span(&raw.tls_cert)), ("tls_key", span(&raw.tls_key))];
    if let (Some(_), Some(span)) = (env.1, file.1) {
        return Err(Problem::new(ProblemKind::Conflict, "`password_env` and `password_file` exclude each other")
            .at(span, "here")
            .help("leave one of them out"));
    }
    for ((given, place), (needed, other)) in [(env, user), (file, user), (cert, key), (key, cert)] {
        if let (Some(span), None) = (place, other) {
            return Err(Problem::new(ProblemKind::MissingKey, format!("`{given}` needs `{needed}`"))
                .at(span, "here")
                .help(format!("add `{needed}` beside it")));
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use miette::Diagnostic as _;

    use super::super::{LoadError, parse};
    use super::*;

    fn read(entry: &str) -> Result<SystemChoice, LoadError> {
        let text = format!("{{name: t, workload: hello, axes: {{system: [mosquitto, {entry}]}}}}");
        parse("t.yaml", &text, &|_, _| Ok(())).map(|experiment| experiment.axes.system[1].clone())
    }

    #[test]
    fn an_endpoint_is_a_system_with_a_label_of_its_own() {
        let entry =
            "{endpoint: 'mqtts://broker:8883', label: ours, system: emqx, user: ann, password_env: PW, tls_ca: ca.pem}";
        let found = read(entry).unwrap();
        assert_eq!((found.label.as_str(), found.system.as_deref()), ("ours", Some("emqx")));
        let endpoint = found.endpoint.unwrap();
        assert_eq!((endpoint.url.as_str(), endpoint.tls_ca.as_deref()), ("mqtts://broker:8883", Some("ca.pem")));
        assert_eq!((endpoint.user.as_deref(), endpoint.password_env.as_deref()), (Some("ann"), Some("PW")));
        assert_eq!(read("{endpoint: 'mqtt://h', label: x}").unwrap(), SystemChoice::at("x", "mqtt://h"));
    }

    #[test]
    fn keys_that_an_endpoint_cannot_have_are_named() {
        for (entry, message, help) in [
            ("{endpoint: 'mqtt://h'}", "an endpoint has no name", "label: ours"),
            ("{endpoint: 'mqtt://h', system: emqx}", "an endpoint has no name", "label: ours"),
            ("{label: x}", "neither `system` nor `endpoint`", "mqtt://host:1883"),
            (
                "{endpoint: 'mqtt://h', label: x, profile: tuned}",
                "`profile` is for a system that pubmark starts",
                "leave",
            ),
            ("{endpoint: 'mqtt://h', label: x, tls: true}", "`tls` is for a system that pubmark starts", "mqtts://"),
            ("{endpoint: 'mqtt://h', label: x, limit: none}", "`limit` is for a system that pubmark starts", "leave"),
            ("{system: emqx, user: ann}", "`user` is for a system that runs already", "endpoint: URL"),
            ("{endpoint: 'mqtt://h', label: x, password_env: PW}", "`password_env` needs `user`", "add `user`"),
            ("{endpoint: 'mqtts://h', label: x, tls_key: k}", "`tls_key` needs `tls_cert`", "add `tls_cert`"),
            ("{endpoint: 'mqtt://ann:hunter2@h', label: x}", "the URL holds a password", "password_env: VARIABLE"),
        ] {
            let error = read(entry).unwrap_err();
            let hint = error.help().map(|help| help.to_string()).unwrap_or_default();
            assert!(error.to_string().contains(message) && hint.contains(help), "{entry}: {error}; {hint}");
            let shown = format!("{:?}", miette::Report::new(error));
            assert!(!shown.contains("hunter2"), "{entry}: {shown}");
        }
    }
}
