//! Every problem is one diagnostic at the right position, with a hint what to write instead.

use pubmark_model::load::{self, LoadError, LoadOptions, ProblemKind};

use super::{group, read, refused};

/// A text, the kind of its problem, the underlined text, its line, and a part of the hint.
struct Case {
    text: String,
    kind: ProblemKind,
    underlined: &'static str,
    line: usize,
    hint: &'static str,
}

fn case(text: impl Into<String>, kind: ProblemKind, underlined: &'static str, line: usize, hint: &'static str) -> Case {
    Case { text: text.into(), kind, underlined, line, hint }
}

#[test]
fn device_groups_are_checked() {
    use ProblemKind::*;
    let whole = "every: 1s\npayload: 100B";
    for case in [
        case(group("evry: 1s\npayload: 100B"), UnknownKey, "evry", 5, "did you mean `every`?"),
        case(group("then: {rate: 2/s}\nrate: 1/s\npayload: 100B"), UnknownKey, "then", 5, "`arrival: {reaction_to:"),
        case(group("every: 10 sec\npayload: 100B"), BadUnit, "10 sec", 5, "write `10s`"),
        case(group("every: 5\npayload: 100B"), BadUnit, "5", 5, "`5ms`"),
        case(group("every: 0s\npayload: 100B"), ImpossibleValue, "0s", 5, "arrival: flood"),
        case(group("rate: 0/s\npayload: 100B"), ImpossibleValue, "0/s", 5, "`1/s`"),
        case(group("every: 1ns\npayload: 100B"), TooLarge, "1ns", 5, "arrival: flood"),
        case(group("every: [1s]\npayload: 100B"), WrongKind, "[", 5, ""),
        case(group("every: 1s\nrate: 1/s\npayload: 100B"), Conflict, "1/s", 6, "keep one"),
        case(group("every: 1s"), MissingKey, "sensor", 3, "payload: 100B"),
        case(group("payload: 100B"), MissingKey, "sensor", 3, "every: 5s"),
        case(group("every: 1s\npayload: 1 kb"), BadUnit, "1 kb", 6, "write `1KB`"),
        case(group("every: 1s\npayload: 1.5B"), ImpossibleValue, "1.5B", 6, "mean"),
        case(group("every: 1s\npayload: 0"), ImpossibleValue, "0", 6, "16 B"),
        case(group("every: 1s\npayload: 1GB"), TooLarge, "1GB", 6, ""),
        case(group("every: 1s\npayload: {min: 2KB, max: 1KB}"), ImpossibleValue, "1KB", 6, "swap"),
        case(group("every: 1s\npayload: {mean: 1KB}"), MissingKey, "1KB", 6, "sd: 10%"),
        case(group("every: 1s\npayload: {mean: 1KB, sd: 1B, variance: 4}"), Conflict, "4", 6, "keep one"),
        case(group("every: 1s\npayload: {mean: 1KB, min: 1B}"), Conflict, "mean", 6, "`sizes`"),
        case(group("every: 1s\npayload: {sizes: []}"), Empty, "sizes", 6, "at least one"),
        case(group("every: 1s\npayload: {man: 1KB, sd: 10%}"), UnknownKey, "man", 6, "did you mean `mean`?"),
        case(group("every: 1s\npayload: {mean: 1KB, sd: 10001%}"), ImpossibleValue, "10001%", 6, "sd: 10%"),
        case(group("every: 1s\npayload: {mean: 100MB, sd: 50MB}"), TooLarge, "50MB", 6, "`max`"),
        case(group("every: 1s\npayload: {mean: 1MB, sd: 5000%, shape: lognormal}"), TooLarge, "5000%", 6, "smaller"),
        case(
            group("every: 1s\npayload: {mean: 1KB, variance: 1000000000000}"),
            ImpossibleValue,
            "1000000000000",
            6,
            "sd: 10%",
        ),
        case(group("every: 1s\njitter: 500ms\npayload: 100B"), ImpossibleValue, "500ms", 6, "500ms"),
        case(group("every: 1s\njitter: 5ms\npayload: 1B\narrival: poisson"), Conflict, "5ms", 6, "leave it out"),
        case(group("jitter: 5ms\npayload: 1B\narrival: {trace: [1s]}"), Conflict, "5ms", 5, "`jitter: null`"),
        case(group(&format!("{whole}\nqos: 3")), ImpossibleValue, "3", 7, "`2` (exactly-once)"),
        case(group(&format!("{whole}\nin_flight_window: 0")), ImpossibleValue, "0", 7, "between 1 and 65535"),
        case(group(&format!("{whole}\nsession: sticky")), ImpossibleValue, "sticky", 7, "`persistent`"),
        case(group(&format!("{whole}\nretain: maybe")), WrongKind, "maybe", 7, ""),
        case(
            group(&format!("{whole}\ntopic: \"a/{{devise}}\"")),
            UnknownPlaceholder,
            "\"a/{devise}\"",
            7,
            "`{device}`?",
        ),
        case(group(&format!("{whole}\ntopic: \"a/{{device\"")), UnknownPlaceholder, "\"a/{device\"", 7, "`{device}`"),
        case(group(&format!("{whole}\ntopic: a/+")), BadTopic, "a/+", 7, "placeholders"),
        case(group(&format!("{whole}\ntopic: $SYS/a")), BadTopic, "$SYS/a", 7, "another level"),
        case(group(&format!("{whole}\ntopic: ''")), BadTopic, "''", 7, "one level"),
        case(group(&format!("{whole}\narrival: flood")), Conflict, "1s", 5, "arrival: periodic"),
        case(group(&format!("{whole}\narrival: posson")), ImpossibleValue, "posson", 7, "did you mean `poisson`?"),
        case(group(&format!("{whole}\narrival: {{on: 5s}}")), MissingKey, "on", 7, "off: 20s"),
        case(group(&format!("{whole}\narrival: {{on: 999us, off: 1s}}")), ImpossibleValue, "999us", 7, "100ms"),
        case(group(&format!("{whole}\narrival: {{on: 1s, off: 1ns}}")), ImpossibleValue, "1ns", 7, "100ms"),
        case(group("arrival: {trace: [2s, 1s]}\npayload: 1B"), ImpossibleValue, "1s", 5, "ascend"),
        case(group("arrival: {trace: [1s], repeat: 1s}\npayload: 1B"), ImpossibleValue, "1s", 5, "longer"),
        case(group("arrival: {trace: [0s, 1ns], repeat: 1us}\npayload: 1B"), TooLarge, "1us", 5, "`repeat` longer"),
        case(group("arrival: {trace: []}\npayload: 1B"), Empty, "trace", 5, "at least one"),
    ] {
        check(&case);
    }
}

#[test]
fn profiles_and_states_are_checked() {
    use ProblemKind::*;
    let profile = |lines: &str| group(&format!("every: 1s\npayload: 100B\nprofile: {lines}"));
    let states = |lines: &str| group(&format!("payload: 100B\narrival: {{states: [{lines}]}}"));
    const IDLE: &str = "{name: idle, rate: 1/min, for: 30s}";
    let after_idle = |lines: &str| states(&format!("{IDLE}, {lines}"));
    for case in [
        case(profile("{day: 60s}"), MissingKey, "day", 7, ""),
        case(profile("{day: 0s, curve: {'00:00': 1}}"), ImpossibleValue, "0s", 7, "how long"),
        case(profile("{day: 10us, curve: {'00:00': 1}}"), ImpossibleValue, "10us", 7, "100ms"),
        case(profile("{day: 60, curve: {'00:00': 1}}"), BadUnit, "60", 7, "60s"),
        case(profile("{curve: {}}"), Empty, "{", 7, "08:00"),
        case(profile("{curve: {'24:00': 1}}"), BadUnit, "'24:00'", 7, "23:59"),
        case(profile("{curve: {'8': 1}}"), BadUnit, "'8'", 7, "in quotes"),
        case(profile("{start: noon, curve: {'08:00': 1}}"), BadUnit, "noon", 7, "23:59"),
        case(profile("{curve: {'08:00': 1, '8:00': 2}}"), ImpossibleValue, "'8:00'", 7, "a minute apart"),
        case(profile("{curve: {'08:00': -1}}"), ImpossibleValue, "-1", 7, ""),
        case(profile("{curve: {'08:00': high}}"), WrongKind, "high", 7, ""),
        case(profile("{curve: {'08:00': 0}}"), ImpossibleValue, "'08:00'", 7, "above 0"),
        case(profile("{curve: {'08:00': 10001}}"), ImpossibleValue, "10001", 7, "higher `rate`"),
        case(profile("{day: 87600h, curve: {'08:00': 1000}}"), ImpossibleValue, "'08:00'", 7, "`day` shorter"),
        case(
            group("rate: 1000/s\npayload: 100B\nprofile: {curve: {'08:00': 2000}}"),
            TooLarge,
            "'08:00'",
            7,
            "highest multiplier",
        ),
        case(profile("{kurve: {'08:00': 1}}"), UnknownKey, "kurve", 7, "did you mean `curve`?"),
        case(
            group("arrival: flood\npayload: 100B\nprofile: {curve: {'08:00': 2}}"),
            Conflict,
            "curve",
            7,
            "profile: none",
        ),
        case(states(IDLE), Empty, "[", 6, "idle, rate"),
        case(after_idle("{rate: 1/s, for: 1s}"), MissingKey, "rate", 6, ""),
        case(after_idle("{name: busy, rate: 1/s}"), MissingKey, "name", 6, ""),
        case(after_idle("{name: busy, for: 1s}"), MissingKey, "busy", 6, "`rate: 0/s`"),
        case(after_idle("{name: busy, rate: 1/s, every: 1s, for: 1s}"), Conflict, "1/s", 6, "keep one"),
        case(after_idle("{name: busy, rate: 1/s, for: 0s}"), ImpossibleValue, "0s", 6, "100ms"),
        case(after_idle("{name: busy, rate: 1/s, for: normal 1s}"), BadUnit, "normal 1s", 6, ""),
        case(after_idle("{name: idle, rate: 1/s, for: 1s}"), BadName, "idle", 6, "`name`"),
        case(after_idle("{name: busy, rate: 2000000/s, for: 1s}"), TooLarge, "2000000/s", 6, "more devices"),
        case(
            states("{name: a, rate: 0/s, for: 1s}, {name: b, rate: 0/s, for: 1s}"),
            ImpossibleValue,
            "[",
            6,
            "above `0/s`",
        ),
        case(
            after_idle("{name: busy, rate: 1/s, for: 1s, next: {idel: 100%}}"),
            ImpossibleValue,
            "idel",
            6,
            "`idle`, `busy`",
        ),
        case(
            after_idle("{name: busy, rate: 1/s, for: 1s, next: {idle: 60%}}"),
            ImpossibleValue,
            "idle",
            6,
            "add up to 100 %",
        ),
        case(
            after_idle("{name: busy, rate: 1/s, for: 1s, next: {idle: 160%}}"),
            ImpossibleValue,
            "160%",
            6,
            "between 0% and 100%",
        ),
        case(
            after_idle("{name: busy, rate: 1/s, for: 1s, next: {busy: 100%}}"),
            ImpossibleValue,
            "busy",
            6,
            "add `idle` to the `next`",
        ),
        case(
            group(
                &format!("every: 1s\npayload: 100B\narrival: {{states: [{IDLE}, {IDLE}]}}").replacen("idle", "busy", 1),
            ),
            Conflict,
            "1s",
            5,
            "leave `every` and `rate` out",
        ),
        case(
            group("payload: 100B\nevery: 1s\narrival: {on: 1s, off: 1s, for: 1s}"),
            Conflict,
            "1s",
            7,
            "leave this key out",
        ),
    ] {
        check(&case);
    }
}

#[test]
fn churn_is_checked() {
    use ProblemKind::*;
    let churn = |lines: &str| group(&format!("every: 1s\npayload: 100B\nchurn: {lines}"));
    for case in [
        case(
            churn("{disconnect: 1.5 every 1s, reconnect: 1 every 1s}"),
            ImpossibleValue,
            "1.5 every 1s",
            7,
            "between 0% and 100%",
        ),
        case(
            churn("{disconnect: 150% every 1s, reconnect: 1 every 1s}"),
            ImpossibleValue,
            "150% every 1s",
            7,
            "between 0% and 100%",
        ),
        case(churn("{disconnect: 5% every 1s}"), ImpossibleValue, "disconnect", 7, "reconnect: 50% every 5s"),
        case(
            churn("{disconnect: 5% every 1s, reconnect: 0% every 1s}"),
            ImpossibleValue,
            "0% every 1s",
            7,
            "reconnect",
        ),
        case(
            churn("{disconnect: 5% every 0s, reconnect: 5% every 1s}"),
            ImpossibleValue,
            "5% every 0s",
            7,
            "5% every 1s",
        ),
        case(
            churn("{disconnect: 5% every 999us, reconnect: 5% every 1s}"),
            ImpossibleValue,
            "5% every 999us",
            7,
            "100ms",
        ),
        case(churn("{disconnect: 5%, reconnect: 5% every 1s}"), BadUnit, "5%", 7, "20% every 5s"),
        case(
            churn("{disconnect: 5% every 1 sec, reconnect: 5% every 1s}"),
            BadUnit,
            "5% every 1 sec",
            7,
            "20% every 5s",
        ),
        case(churn("{disconnect: 5% every 1sec, reconnect: 5% every 1s}"), BadUnit, "5% every 1sec", 7, "write `1s`"),
        case(churn("{reconnect: 5% every 1s}"), MissingKey, "reconnect", 7, ""),
        case(churn("sometimes"), ImpossibleValue, "sometimes", 7, "`none`"),
    ] {
        check(&case);
    }
}

#[test]
fn the_shortest_periods_are_accepted() {
    for lines in [
        "arrival: {on: 1ms, off: 1ms}\nevery: 1us",
        "arrival: {trace: [0s, 1ns], repeat: 2us}",
        "every: 1s\nchurn: {disconnect: 5% every 1ms, reconnect: 5% every 1ms}",
    ] {
        read(&group(&format!("{lines}\npayload: 100B"))).unwrap_or_else(|error| panic!("{lines}: {error}"));
    }
}

#[test]
fn the_whole_file_is_checked() {
    use ProblemKind::*;
    let subscriber = |lines: &str| {
        format!("name: t\ndevices:\n  - {{name: a, every: 1s, payload: 100B}}\nsubscribers:\n  - {lines}\n")
    };
    for case in [
        case("", WrongKind, "", 1, ""),
        case("[]", WrongKind, "[", 1, ""),
        case("name: t\nsubscribers: []\n", MissingKey, "name", 1, ""),
        case("name: t\ndevices: []\nsubscribers: []\n", Empty, "[", 2, "add a group"),
        case("name: a/b\ndevices: [{name: a, every: 1s, payload: 1KB}]\nsubscribers: []\n", BadName, "a/b", 1, "`-`"),
        case(
            "name: a b\ndevices: [{name: a, every: 1s, payload: 1KB}]\nsubscribers: []\n",
            BadName,
            "a b",
            1,
            "letters",
        ),
        case(
            "name: t\ndevices: [{count: 1, every: 1s, payload: 1KB}]\nsubscribers: []\n",
            MissingKey,
            "count",
            2,
            "type",
        ),
        case("name: t\ndevices: [{type: x/y}]\nsubscribers: []\n", UnknownDeviceType, "x/y", 2, "no `device_types`"),
        case(
            "name: t\ndevice_types: {home/bulb: {every: 1s, payload: 1KB}}\ndevices: [{type: home/blub}]\nsubscribers: []\n",
            UnknownDeviceType,
            "home/blub",
            3,
            "did you mean `home/bulb`?",
        ),
        case(
            "name: t\ndevice_types: {home/bulb: {every: 1s, payloads: 1KB}}\ndevices: [{type: home/bulb}]\nsubscribers: []\n",
            UnknownKey,
            "payloads",
            2,
            "did you mean `payload`?",
        ),
        case(
            "name: t\ndevices:\n  - {name: a, every: 1s, payload: 1KB}\n  - {name: a, every: 1s, payload: 1KB}\nsubscribers: []\n",
            BadName,
            "a",
            4,
            "a `name` of its own",
        ),
        case("name: t\nname: u\n", BadName, "name", 2, "keep one"),
        case("name: [\n", Syntax, "[", 1, "brackets"),
        case(
            "name: t\ndevices: [{name: a, every: 1s, payload: 1KB, count: 0}]\nsubscribers: []\n",
            ImpossibleValue,
            "0",
            2,
            "between 1",
        ),
        case(
            "name: t\ndevices: [{name: a, every: 1s, payload: 1KB, count: 16777216}, {name: b, every: 1s, payload: 1KB}]\nsubscribers: []\n",
            TooLarge,
            "[",
            2,
            "",
        ),
        case(subscriber("{filters: [a/#/b]}"), BadFilter, "a/#/b", 5, "write `a/#`"),
        case(subscriber("{filters: [a/b+]}"), BadFilter, "a/b+", 5, "a/+/b"),
        case(subscriber("{filters: ['a/{idx}']}"), UnknownPlaceholder, "'a/{idx}'", 5, "`{index}`"),
        case(subscriber("{filters: []}"), Empty, "[", 5, "everything"),
        case(subscriber("{filter: a}"), UnknownKey, "filter", 5, "did you mean `filters`?"),
        case(subscriber("{filters: a, qos: 3}"), ImpossibleValue, "3", 5, "levels are"),
        case(subscriber("{name: x, filters: a}\n  - {name: x, filters: b}"), BadName, "x", 6, "of its own"),
        case(subscriber("{filters: a, processing: 5}"), BadUnit, "5", 5, "`5ms`"),
        case(subscriber("{filters: a}\npublished: {devcies: {}}"), UnknownKey, "devcies", 6, "did you mean `devices`?"),
        case(subscriber("{filters: a}\npublished: {devices: {b: {qos: 1}}}"), UnknownName, "b", 6, "`a`"),
        case(subscriber("{filters: a}\npublished: {devices: {a: {qos: 7}}}"), ImpossibleValue, "7", 6, "levels are"),
        case(
            subscriber("{filters: a}\nplacement: {devices: everywhere}"),
            ImpossibleValue,
            "everywhere",
            6,
            "`replicate`",
        ),
        case(subscriber("{filters: '${x}'}\nparameters: {y: 1}"), UnknownParameter, "'${x}'", 5, "`y`"),
        case(subscriber("{filters: '${x'}\nparameters: {x: 1}"), UnknownParameter, "'${x'", 5, "${NAME}"),
        case(subscriber("{filters: a}\nparameters: {x: [1]}"), WrongKind, "x", 6, ""),
    ] {
        check(&case);
    }
}

fn check(case: &Case) {
    let diagnostic = refused(&case.text);
    let shown = format!("{:?}", miette::Report::new(diagnostic.clone()));
    assert_eq!(diagnostic.kind(), case.kind, "{shown}");
    assert_eq!(diagnostic.underlined(), Some(case.underlined), "{shown}");
    assert_eq!(diagnostic.line(), Some(case.line), "{shown}");
    assert!(
        diagnostic.hint().unwrap_or_default().contains(case.hint),
        "hint {:?} lacks {:?}",
        diagnostic.hint(),
        case.hint
    );
    assert!(!diagnostic.to_string().ends_with('.'), "{shown}");
}

#[test]
fn a_diagnostic_shows_file_line_text_and_hint() {
    let mut shown = String::new();
    let diagnostic = refused(&group("every: 10 sec\npayload: 100B"));
    miette::NarratableReportHandler::new().render_report(&mut shown, &diagnostic).unwrap();
    for part in
        ["`10 sec` is not a duration", "test.yaml", "line 5", "every: 10 sec", "write `10s`", "workload::bad-unit"]
    {
        assert!(shown.contains(part), "{part} is not in:\n{shown}");
    }
}

#[test]
fn names_of_workloads_are_suggested() {
    let error = load::load("smart-hmoe", &LoadOptions::default()).unwrap_err();
    let LoadError::NotFound { hint, .. } = &error else { panic!("{error}") };
    assert!(hint.contains("did you mean `smart-home`?"), "{hint}");
    let error = load::load("./no/such/file.yaml", &LoadOptions::default()).unwrap_err();
    assert!(matches!(error, LoadError::Unreadable { .. }), "{error}");
    let error = load::load("/", &LoadOptions::default()).unwrap_err();
    assert!(matches!(error, LoadError::Unreadable { .. }), "{error}");
    let error = load::load("smart-home", &LoadOptions { scale: 0, ..LoadOptions::default() }).unwrap_err();
    assert!(matches!(error, LoadError::NoScale), "{error}");
}

#[test]
fn a_valid_file_is_accepted() {
    let workload = read(&group("every: 1s\npayload: 100B")).unwrap();
    assert_eq!(workload.devices[0].count, 3);
    assert!(workload.deviations.is_empty());
}
