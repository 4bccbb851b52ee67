//! `where` of subscribers: what is accepted, what is refused before the run, and at which position.

use pubmark_model::load::ProblemKind;

use super::{read, refused};

const BODY: &str =
    r#"{"temperature": {{normal 21 5}}, "room": "{{enum hall lab}}", "alarm": {{bool 0.1}}, "at": {"x": 1}}"#;

/// A workload whose subscribers have these keys besides their filters.
fn workload(keys: &str) -> String {
    format!(
        "name: t
devices:
  - {{name: hall/sensor, every: 1s, topic: 'hall/{{device}}', body: {{json: '{BODY}'}}}}
  - {{name: hall/camera, every: 1s, payload: 1KB, topic: 'camera/{{device}}'}}
  - {{name: hall/fixed, every: 1s, payload: 40B, topic: 'fixed/{{device}}', body: {{json: '{{\"temperature\": 30}}'}}}}
subscribers:
  - {{name: alarms, {keys}}}
"
    )
}

fn asks(filter: &str, predicate: &str) -> String {
    workload(&format!("filters: '{filter}', where: '{predicate}'"))
}

#[test]
fn a_predicate_is_read() {
    let workload = read(&asks("hall/#", "payload.temperature > 30 && payload.room == \"hall\"")).unwrap();
    let predicate = workload.subscribers[0].predicate.as_ref().unwrap();
    assert_eq!(predicate.holds(br#"{"temperature": 31, "room": "hall"}"#), Ok(true));
    assert_eq!(predicate.holds(br#"{"temperature": 31, "room": "lab"}"#), Ok(false));
    assert_eq!(read(&workload_without()).unwrap().subscribers[0].predicate, None);
}

fn workload_without() -> String {
    workload("filters: '#'")
}

#[test]
fn mistakes_are_refused_at_their_place() {
    use ProblemKind::{Conflict, ImpossibleValue};
    for (filter, predicate, kind, underlined, message, hint) in [
        ("hall/#", "payload.temperature >> 30", ImpossibleValue, ">", "where a value should be", "write a field"),
        ("hall/#", "payload.temperature > ", ImpossibleValue, "", "ends where a value should be", "value"),
        ("hall/#", "temperature > 30", ImpossibleValue, "temperature", "not known", "payload.temperature"),
        (
            "hall/#",
            "payload.temprature > 30",
            ImpossibleValue,
            "payload.temprature",
            "no field `temprature`",
            "`temperature`",
        ),
        ("hall/#", "payload.at.y > 30", ImpossibleValue, "payload.at.y", "no field `y`", "`x`"),
        ("hall/#", "payload.at > 30", ImpossibleValue, "payload.at", "an object", "name a number"),
        (
            "hall/#",
            "payload.temperature > \"30\"",
            ImpossibleValue,
            "payload.temperature > \"30\"",
            "is a number, and `\"30\"` is a text",
            "one type",
        ),
        ("hall/#", "payload.alarm > false", ImpossibleValue, "payload.alarm > false", "no order", "`==`"),
        ("hall/#", "payload.temperature", ImpossibleValue, "payload.temperature", "is a number, not true", "> 30"),
        (
            "#",
            "payload.temperature > 30",
            Conflict,
            "'payload.temperature > 30'",
            "`hall/camera` have no JSON",
            "leave it out",
        ),
        (
            "fixed/#",
            "payload.temperature > 3",
            Conflict,
            "'payload.temperature > 3'",
            "`hall/fixed` cut its JSON",
            "payload: 43B",
        ),
    ] {
        let diagnostic = refused(&asks(filter, predicate));
        assert_eq!(diagnostic.kind(), kind, "{predicate}: {diagnostic}");
        assert_eq!(diagnostic.underlined(), Some(underlined), "{predicate}: {diagnostic}");
        assert_eq!(diagnostic.line(), Some(7), "{predicate}: {diagnostic}");
        assert!(diagnostic.to_string().contains(message), "{predicate}: {diagnostic}");
        assert!(diagnostic.hint().unwrap_or_default().contains(hint), "{predicate}: {:?}", diagnostic.hint());
    }
}

#[test]
fn a_filter_can_be_the_brokers() {
    let group = |keys: &str| read(&workload(keys)).map(|workload| workload.subscribers[0].clone());
    let full = |filter: &str, at: &str| group(&format!("filters: 'hall/#', where: {{filter: '{filter}'{at}}}"));
    let broker = full("payload.temperature > 30 && payload.at.x != 2", ", at: broker").unwrap();
    let selector = broker.broker_filter().map(|predicate| predicate.selector().unwrap());
    assert_eq!(selector.as_deref(), Some("(payload$temperature > 30.0) AND (payload$at$x <> 2.0)"));
    for at in ["", ", at: client"] {
        let client = full("payload.temperature > 30", at).unwrap();
        assert!(client.predicate.is_some() && client.broker_filter().is_none());
    }
    let refused_filter = |filter: &str, at: &str| {
        refused(&workload(&format!("filters: 'hall/#', where: {{filter: '{filter}', at: {at}}}")))
    };
    let order = refused_filter("payload.room < \"lab\"", "broker");
    assert_eq!(order.underlined(), Some("payload.room < \"lab\""), "{order}");
    assert!(
        order.to_string().contains("an order of texts") && order.hint().unwrap_or_default().contains("`at: client`")
    );
    let word = refused_filter("payload.alarm", "server");
    assert_eq!(word.kind(), ProblemKind::ImpossibleValue, "{word}");
}

#[test]
fn a_document_that_fits_its_payload_can_be_filtered() {
    let text = asks("fixed/#", "payload.temperature > 3").replace("payload: 40B", "payload: 64B");
    assert!(read(&text).unwrap().subscribers[0].predicate.is_some());
}

#[test]
fn a_client_that_reacts_filters_nothing() {
    let text = format!(
        "name: t
devices:
  - {{name: sensor, every: 1s, topic: in, body: {{json: '{BODY}'}}}}
  - {{name: siren, client: c, payload: 100B, topic: out, arrival: {{reaction_to: in}}}}
subscribers:
  - {{name: hub, client: c, filters: in, where: payload.alarm}}
"
    );
    let diagnostic = refused(&text);
    assert_eq!(diagnostic.kind(), ProblemKind::Conflict);
    assert_eq!(diagnostic.underlined(), Some("payload.alarm"));
    assert!(diagnostic.to_string().contains("reacts to messages"), "{diagnostic}");
}

#[test]
fn an_expression_of_several_lines_has_its_line_and_column() {
    let text = workload("filters: 'hall/#'").replace(
        "{name: alarms, filters: 'hall/#'}",
        "name: alarms\n    filters: 'hall/#'\n    where: |\n      payload.alarm &&\n      payload.temperature = 30\n",
    );
    let shown = refused(&text).to_string();
    assert!(shown.contains("line 2, column 21 of the expression"), "{shown}");
}

#[test]
fn a_payload_for_the_run_that_cuts_a_document_is_refused() {
    use pubmark_model::load::{self, LoadError, LoadOptions};
    let text = asks("fixed/#", "payload.temperature > 3").replace("payload: 40B", "payload: 64B");
    let with = |bytes| load::parse("test.yaml", &text, &LoadOptions { payload: Some(bytes), ..LoadOptions::default() });
    let Err(LoadError::Payload { message, hint }) = with(42) else { panic!("42 B hold no document of 19 B") };
    assert!(message.contains("`hall/fixed`") && hint.contains("43 B"), "{message}: {hint}");
    assert!(with(150).is_ok());
}
