//! Links: what is accepted, what is refused with which error, presets, and that schedules do not depend on links.

use proptest::prelude::*;
use pubmark_model::fleet::Fleet;
use pubmark_model::link::choice::LinkChoice;
use pubmark_model::link::{Conditions, Delay, Distribution, Link, Loss, Rate, Step, presets};
use pubmark_model::load::{self, LoadError, LoadOptions, ProblemKind};
use pubmark_model::schedule::{self, Timeline};
use pubmark_model::workload::Workload;

use super::{read, refused, with};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// A workload whose only device group uses the link `test` with these lines.
fn behind(lines: &str) -> String {
    format!(
        "name: test\ndevices:\n  - {{name: sensor, every: 1s, payload: 100B, link: test}}\nsubscribers:\n  - filters: [\"#\"]\nlinks:\n  test:\n    {}\n",
        lines.replace('\n', "\n    ")
    )
}

fn link(lines: &str) -> Link {
    read(&behind(lines)).unwrap_or_else(|error| panic!("{lines}: {error:?}")).links.remove(0)
}

/// Conditions in both directions from the start.
fn conditions(lines: &str) -> Conditions {
    let link = link(lines);
    assert_eq!(link.up, link.down, "{lines}");
    assert_eq!(link.up.len(), 1, "{lines}");
    link.up[0].conditions
}

#[test]
fn every_key_is_read() {
    let plain = Conditions::default();
    let delay =
        |mean_ns, jitter_ns, distribution, jitter_reorders| Delay { mean_ns, jitter_ns, distribution, jitter_reorders };
    let rate = |bits_per_second, queue_bytes| Some(Rate { bits_per_second, queue_bytes });
    for (lines, wanted) in [
        ("{}", plain),
        ("delay: 20ms", Conditions { delay: delay(20 * MS, 0, Distribution::Uniform, false), ..plain }),
        (
            "{delay: 20ms, jitter: 20ms, jitter_reorders: true}",
            Conditions { delay: delay(20 * MS, 20 * MS, Distribution::Uniform, true), ..plain },
        ),
        (
            "{delay: 2ms, jitter: 3ms, distribution: normal}",
            Conditions { delay: delay(2 * MS, 3 * MS, Distribution::Normal, false), ..plain },
        ),
        ("loss: 1%", Conditions { loss: Loss::Random(0.01), ..plain }),
        ("loss: 0.25", Conditions { loss: Loss::Random(0.25), ..plain }),
        ("loss: 0", plain),
        ("loss: 100%", Conditions { loss: Loss::Random(1.0), ..plain }),
        (
            "loss: {to_bad: 1%, to_good: 25%}",
            Conditions {
                loss: Loss::GilbertElliott { to_bad: 0.01, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 },
                ..plain
            },
        ),
        (
            "loss: {to_bad: 0.1, to_good: 0.5, loss_bad: 50%, loss_good: 0.1%}",
            Conditions {
                loss: Loss::GilbertElliott { to_bad: 0.1, to_good: 0.5, loss_good: 0.001, loss_bad: 0.5 },
                ..plain
            },
        ),
        ("rate: 1Mbit/s", Conditions { rate: rate(1_000_000, 64_000), ..plain }),
        ("{rate: 100kB/s, queue: 15KB}", Conditions { rate: rate(800_000, 15_000), ..plain }),
        ("rate: none", plain),
        ("duplicate: 0.1%", Conditions { duplicate: 0.001, ..plain }),
        ("reorder: 5%", Conditions { reorder: 0.05, ..plain }),
        ("down: true", Conditions { down: true, ..plain }),
    ] {
        assert_eq!(conditions(lines), wanted, "{lines}");
    }
    assert_eq!(link("{source: measured, delay: 1ms}").source.as_deref(), Some("measured"));
}

#[test]
fn directions_take_what_both_have_and_say_what_differs() {
    let link = link("{delay: 20ms, up: {rate: 1Mbit/s}, down: {rate: 8Mbit/s, delay: 5ms, down: true}}");
    let [up, down] = [&link.up, &link.down].map(|steps| steps[0].conditions);
    assert_eq!((up.delay.mean_ns, up.rate.unwrap().bits_per_second, up.down), (20 * MS, 1_000_000, false));
    assert_eq!((down.delay.mean_ns, down.rate.unwrap().bits_per_second, down.down), (5 * MS, 8_000_000, true));
}

#[test]
fn a_step_changes_what_it_names_and_leaves_the_rest() {
    let link = link(
        "delay: 20ms\nrate: 100kB/s\nqueue: 15KB\nseries:\n  - {at: 10s, rate: 2kB/s}\n  - {at: 20s, down: {loss: 1%}}\n  - {at: 30s, rate: none}\n  - {at: 40s, rate: 1kB/s}",
    );
    let told = |steps: &[Step]| {
        let rate = |step: &Step| step.conditions.rate.map(|rate| (rate.bits_per_second, rate.queue_bytes));
        let lossy = |step: &Step| step.conditions.loss == Loss::Random(0.01);
        steps
            .iter()
            .map(|step| (step.at_ns / SECOND, step.conditions.delay.mean_ns / MS, rate(step), lossy(step)))
            .collect::<Vec<_>>()
    };
    let [fast, slow, slower] = [800_000, 16_000, 8_000].map(|rate| Some((rate, 15_000)));
    // The direction up has no step where only the direction down changes.
    assert_eq!(
        told(&link.up),
        [(0, 20, fast, false), (10, 20, slow, false), (30, 20, None, false), (40, 20, slower, false)]
    );
    assert_eq!(
        told(&link.down),
        [
            (0, 20, fast, false),
            (10, 20, slow, false),
            (20, 20, slow, true),
            (30, 20, None, true),
            (40, 20, slower, true)
        ]
    );
}

#[test]
fn a_series_may_say_what_holds_from_the_start() {
    let link = link("series: [{at: 0s, rate: 1kB/s}, {at: 5s, rate: 2kB/s}]");
    let rates: Vec<(u64, u64)> =
        link.up.iter().map(|step| (step.at_ns, step.conditions.rate.unwrap().bits_per_second)).collect();
    assert_eq!(rates, [(0, 8_000), (5 * SECOND, 16_000)]);
}

#[test]
fn impossible_values_are_refused_at_their_place() {
    use ProblemKind::*;
    for (lines, kind, underlined, hint) in [
        ("delya: 20ms", UnknownKey, "delya", "did you mean `delay`?"),
        ("delay: 20", BadUnit, "20", "`20ms`"),
        ("delay: 11m", ImpossibleValue, "11m", "10m at most"),
        ("{delay: 2ms, jitter: 3ms}", ImpossibleValue, "3ms", "distribution: normal"),
        ("{jitter: 3ms}", ImpossibleValue, "3ms", "distribution: normal"),
        ("{delay: 5ms, jitter: 3ms, down: {delay: 1ms}}", ImpossibleValue, "1ms", "distribution: normal"),
        ("{delay: 5ms, jitter: 3ms, series: [{at: 1s, delay: 2ms}]}", ImpossibleValue, "2ms", "distribution: normal"),
        ("{delay: 5ms, distribution: gaussian}", ImpossibleValue, "gaussian", "`normal`"),
        ("loss: 101%", ImpossibleValue, "101%", "between 0% and 100%"),
        ("loss: 5", ImpossibleValue, "5", "write `5%`"),
        ("loss: 1", ImpossibleValue, "1", "write `1%`, or `100%`"),
        ("loss: much", BadUnit, "much", "`20%`"),
        ("loss: -1%", BadUnit, "-1%", ""),
        ("loss: {to_bad: 1%}", MissingKey, "to_bad", ""),
        ("loss: {to_bad: 1%, to_good: 0%}", ImpossibleValue, "0%", "to_good: 25%"),
        ("loss: {to_bad: 1%, to_good: 2.5}", ImpossibleValue, "2.5", "write `2.5%`"),
        ("loss: {to_bad: 1%, to_good: 2%, los_bad: 1%}", UnknownKey, "los_bad", "did you mean `loss_bad`?"),
        ("rate: 100kbps", BadUnit, "100kbps", "write `100kbit/s` for bits, or `100kB/s` for bytes"),
        ("rate: 1Mbps", BadUnit, "1Mbps", "write `1Mbit/s` for bits, or `1MB/s` for bytes"),
        ("rate: 5/s", BadUnit, "5/s", "units are `bit/s`"),
        ("rate: 0bit/s", ImpossibleValue, "0bit/s", "down: true"),
        ("rate: 0.1bit/s", ImpossibleValue, "0.1bit/s", "1bit/s"),
        ("rate: 2000Gbit/s", ImpossibleValue, "2000Gbit/s", "1000Gbit/s"),
        ("{rate: 1Mbit/s, queue: 1KB}", ImpossibleValue, "1KB", "1500B"),
        ("{rate: 1Mbit/s, queue: 1GB}", ImpossibleValue, "1GB", "256MB"),
        ("queue: 10KB", Conflict, "10KB", "rate: 1Mbit/s"),
        ("{up: {rate: 1Mbit/s}, queue: 10KB}", Conflict, "10KB", "rate: 1Mbit/s"),
        ("{rate: 1Mbit/s, series: [{at: 1s, rate: none, queue: 10KB}]}", Conflict, "10KB", "rate: 1Mbit/s"),
        ("duplicate: 2", ImpossibleValue, "2", "write `2%`"),
        ("reorder: 200%", ImpossibleValue, "200%", "between"),
        ("down: perhaps", WrongKind, "perhaps", ""),
        ("{down: true, up: {delay: 1ms}}", Conflict, "true", "`down: {down: true}`"),
        ("up: true", WrongKind, "true", ""),
        ("up: {at: 1s}", UnknownKey, "at", "`delay`"),
        ("up: {up: {delay: 1ms}}", UnknownKey, "up", "`delay`"),
        ("series: []", Empty, "[", "or leave it out"),
        ("series: [{at: 1s}]", Empty, "1s", "{at: 10s, loss: 5%}"),
        ("series: [{loss: 1%}]", MissingKey, "loss", ""),
        ("series: [{at: 2s, loss: 1%}, {at: 1s, loss: 2%}]", ImpossibleValue, "1s", "order of their times"),
        ("series: [{at: 2s, loss: 1%}, {at: 2s, loss: 2%}]", ImpossibleValue, "2s", "one for each time"),
        ("series: [{at: 2s, series: []}]", UnknownKey, "series", "`at`"),
    ] {
        let diagnostic = refused(&behind(lines));
        let shown = format!("{lines}\n{:?}", miette::Report::new(diagnostic.clone()));
        assert_eq!(diagnostic.kind(), kind, "{shown}");
        assert_eq!(diagnostic.underlined(), Some(underlined), "{shown}");
        assert!(diagnostic.hint().unwrap_or_default().contains(hint), "{:?} lacks {hint:?}", diagnostic.hint());
    }
}

#[test]
fn too_many_steps_and_links_are_refused() {
    let steps: String = (1..=10_001).map(|at| format!("\n  - {{at: {at}s, loss: {}%}}", at % 2)).collect();
    assert_eq!(refused(&behind(&format!("series:{steps}"))).kind(), ProblemKind::TooLarge);
    let links: String = (0..1_001).map(|number| format!("  l{number}: {{delay: 1ms}}\n")).collect();
    assert_eq!(refused(&(behind("delay: 1ms") + &links)).kind(), ProblemKind::TooLarge);
}

/// Two device groups, of which one shares clients with subscribers, requesters and responders; `{}` are their links.
fn groups(links: [&str; 5]) -> String {
    let [sensor, lamp, controller, panel, store] = links;
    format!(
        "name: t\ndefaults: {{payload: 100B}}\ndevices:\n  - {{name: sensor, every: 1s, topic: 'a'{sensor}}}\n  - {{name: lamp, client: c, every: 1s, topic: 'b'{lamp}}}\nsubscribers:\n  - {{name: controller, client: c, filters: ['a']{controller}}}\nrequesters:\n  - {{name: panel, every: 1s, payload: 100B, topic: 'r'{panel}}}\nresponders:\n  - {{name: store, filters: ['r']{store}}}\nlinks: {{mine: {{delay: 1ms}}}}\n"
    )
}

fn links_of(workload: &Workload) -> Vec<(&str, Option<&str>)> {
    let devices = workload.devices.iter().map(|group| (group.name.as_str(), group.link.as_deref()));
    let subscribers = workload.subscribers.iter().map(|group| (group.name.as_str(), group.link.as_deref()));
    devices.chain(subscribers).collect()
}

#[test]
fn every_kind_of_group_can_be_behind_a_link() {
    let workload =
        read(&groups([", link: mine", ", link: lte", ", link: lte", ", link: satellite", ", link: none"])).unwrap();
    assert_eq!(
        links_of(&workload),
        [
            ("sensor", Some("mine")),
            ("lamp", Some("lte")),
            ("panel", Some("satellite")),
            ("controller", Some("lte")),
            ("store", None)
        ]
    );
    let names: Vec<&str> = workload.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["mine", "lte", "satellite"]);
    let in_use = workload.links_in_use();
    assert_eq!(in_use[1].1, ["lamp", "controller"]);
    let preset = presets::all().unwrap().into_iter().find(|link| link.name == "lte").unwrap();
    assert_eq!(*in_use[1].0, preset);
}

#[test]
fn types_and_defaults_give_devices_their_link_and_none_takes_it_away() {
    let text = "name: t\ndefaults: {every: 1s, payload: 100B, link: lte}\ndevice_types: {field/soil: {link: lora-like}}\ndevices: [{type: field/soil}, {name: camera}, {name: wired, link: none}]\nsubscribers: [{filters: ['#']}]\n";
    let workload = read(text).unwrap();
    let found: Vec<Option<&str>> = links_of(&workload).into_iter().map(|(_, link)| link).collect();
    assert_eq!(found, [Some("lora-like"), Some("lte"), None, None]);
    let published = format!(
        "{text}published: {{devices: {{camera: {{link: gprs}}}}, subscribers: {{subscriber-1: {{link: lte}}}}}}\n"
    )
    .replace("[{filters", "[{name: subscriber-1, filters");
    let options = super::variant(pubmark_model::workload::Variant::Published);
    let workload = load::parse("test.yaml", &published, &options).unwrap();
    assert_eq!(links_of(&workload)[1], ("camera", Some("gprs")));
    assert_eq!(links_of(&workload)[3], ("subscriber-1", Some("lte")));
}

#[test]
fn names_of_links_are_checked() {
    use ProblemKind::*;
    for (text, kind, underlined, hint) in [
        (groups([", link: mien", "", "", "", ""]), UnknownName, "mien", "did you mean `mine`?"),
        (groups(["", "", "", ", link: edge-typcal", ""]), UnknownName, "edge-typcal", "did you mean `edge-typical`?"),
        (groups(["", ", link: mine", "", "", ""]), Conflict, "controller", "every group of `client: c`"),
        (groups(["", ", link: mine", ", link: lte", "", ""]), Conflict, "lte", "the same `link`"),
        (groups([""; 5]).replace("mine:", "lte:"), BadName, "lte", "my-lte"),
        (groups([""; 5]).replace("mine:", "none:"), BadName, "none", "`none` stands for no link"),
        (groups([""; 5]).replace("mine:", "a/b:"), BadName, "a/b", "letters"),
        (groups([""; 5]).replace("mine:", "a b:"), BadName, "a b", "letters"),
    ] {
        let diagnostic = refused(&text);
        assert_eq!(diagnostic.kind(), kind, "{diagnostic}");
        assert_eq!(diagnostic.underlined(), Some(underlined), "{diagnostic}");
        assert!(diagnostic.hint().unwrap_or_default().contains(hint), "{:?} lacks {hint:?}", diagnostic.hint());
    }
}

#[test]
fn settings_and_parameters_reach_links() {
    let text = behind("delay: \"${delay}\"") + "parameters: {delay: 5ms}\n";
    let delay = |settings: &[(&str, &str)]| {
        load::parse("test.yaml", &text, &with(settings)).unwrap().links[0].up[0].conditions.delay.mean_ns
    };
    assert_eq!(delay(&[]), 5 * MS);
    assert_eq!(delay(&[("delay", "7ms")]), 7 * MS);
    assert_eq!(delay(&[("links.test.delay", "9ms")]), 9 * MS);
    let workload = load::parse("test.yaml", &text, &with(&[("devices.sensor.link", "gprs")])).unwrap();
    assert_eq!(workload.devices[0].link.as_deref(), Some("gprs"));
}

fn chosen(text: &str, choices: &[&str]) -> Result<Workload, LoadError> {
    let links = choices.iter().map(|choice| LinkChoice::parse(choice).unwrap()).collect();
    load::parse("test.yaml", text, &LoadOptions { links, ..LoadOptions::default() })
}

#[test]
fn links_are_chosen_for_all_groups_or_one() {
    let text = groups([", link: mine", "", "", "", ""]);
    let all = chosen(&text, &["lte"]).unwrap();
    assert!(links_of(&all).iter().all(|(_, link)| *link == Some("lte")));
    assert_eq!(all.deviations.last().unwrap().name, "link-replaced");
    assert!(links_of(&chosen(&text, &["none"]).unwrap()).iter().all(|(_, link)| link.is_none()));
    let some = chosen(&text, &["lte", "c=mine", "store=none", "panel=edge-worst"]).unwrap();
    assert_eq!(
        links_of(&some),
        [
            ("sensor", Some("lte")),
            ("lamp", Some("mine")),
            ("panel", Some("edge-worst")),
            ("controller", Some("mine")),
            ("store", None)
        ]
    );
    assert_eq!(some.deviations.len(), 4);
    let built_in = load::load(
        "smart-home",
        &LoadOptions { links: vec![LinkChoice::parse("edge-typical").unwrap()], ..LoadOptions::default() },
    );
    assert!(links_of(&built_in.unwrap()).iter().all(|(_, link)| *link == Some("edge-typical")));
}

#[test]
fn a_link_may_be_defined_where_it_is_chosen() {
    let text = groups([", link: mine", "", "", "", ""]);
    let choice = "sensor={delay: 20ms, down: {rate: 8kbit/s, queue: 4KB}}";
    let workload = chosen(&text, &[choice, "store={loss: 5%}"]).unwrap();
    assert_eq!(links_of(&workload)[0], ("sensor", Some("{delay: 20ms, down: {rate: 8kbit/s, queue: 4KB}}")));
    let link = workload.links.iter().find(|link| link.name.contains("20ms")).unwrap();
    assert_eq!(link.up[0].conditions, conditions("delay: 20ms"));
    assert_ne!(link.down, link.up);
    assert_eq!(
        workload.links.iter().find(|link| link.name == "{loss: 5%}").unwrap().up[0].conditions,
        conditions("loss: 5%")
    );
    let problem = |choice: &str| match chosen(&text, &[choice]) {
        Err(LoadError::Wrong(diagnostic)) => diagnostic.to_string(),
        other => panic!("{choice}: {other:?}"),
    };
    assert!(problem("{delay: 20}").contains("20"));
    assert!(problem("{dely: 20ms}").contains("dely"));
    assert!(problem("{delay: 20ms").len() > 1);
}

#[test]
fn choices_that_cannot_be_are_refused() {
    let text = groups([""; 5]);
    for (choice, message, hint) in [
        ("let", "no link `let`", "did you mean `lte`?"),
        ("sensr=lte", "no group `sensr`", "did you mean `sensor`?"),
        ("lamp=lte", "share the connections `c`", "--link c="),
    ] {
        match chosen(&text, &[choice]) {
            Err(LoadError::Link { message: found, hint: found_hint }) => {
                assert!(found.contains(message), "{found}");
                assert!(found_hint.contains(hint), "{found_hint}");
            }
            other => panic!("{choice}: {other:?}"),
        }
    }
    for text in ["", " ", "=lte", "sensor=", "="] {
        assert!(LinkChoice::parse(text).is_err(), "{text}");
    }
    for text in ["lte", "sensor=lte"] {
        assert_eq!(LinkChoice::parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn the_presets_hold_what_their_sources_say() {
    let presets = presets::all().unwrap();
    let found = |name: &str| presets.iter().find(|link| link.name == name).unwrap_or_else(|| panic!("{name}"));
    for name in [
        "edge-local",
        "edge-optimal",
        "edge-typical",
        "edge-worst",
        "edge-cloud",
        "edge-cloud-printed",
        "gprs",
        "lte",
        "wifi-poor",
        "lora-like",
        "satellite",
        "combench-bandwidth",
    ] {
        assert!(found(name).source.as_ref().is_some_and(|source| source.len() > 20), "{name} says where it is from");
    }
    assert!(presets.iter().all(|link| link.source.is_some()));
    // The testbed's config.yml: delay and jitter in µs, loss in shares.
    for (name, mean_us, sd_us, lost) in [
        ("edge-optimal", 1_250, 250, 0.000_2),
        ("edge-optimal-printed", 2_500, 500, 0.000_4),
        ("edge-typical", 2_080, 420, 0.000_3),
        ("edge-worst", 3_125, 625, 0.000_5),
        ("edge-worst-printed", 6_250, 1_250, 0.001),
        ("edge-cloud", 12_500, 2_500, 0.002),
    ] {
        let Conditions { delay, loss, .. } = found(name).up[0].conditions;
        let Loss::Random(chance) = loss else { panic!("{name}: {loss:?}") };
        assert_eq!((delay.mean_ns, delay.jitter_ns), (mean_us * 1_000, sd_us * 1_000), "{name}");
        assert_eq!(delay.distribution, Distribution::Normal);
        assert!((chance - lost).abs() < 1e-12, "{name}: {chance}");
    }
    assert_eq!(found("edge-local").up[0].conditions, Conditions::default());
    assert_eq!(found("edge-cloud").down[0].conditions, Conditions::default(), "the tester's egress alone");
    let series = |name: &str| -> Vec<(u64, u64)> {
        let rate = |step: &Step| step.conditions.rate.unwrap().bits_per_second;
        assert_eq!(found(name).up, found(name).down);
        found(name).up.iter().map(|step| (step.at_ns / SECOND, rate(step))).collect()
    };
    assert_eq!(series("combench-bandwidth"), [(0, 800_000), (20, 240_000), (50, 16_000), (80, 4_000_000)]);
    assert_eq!(series("combench-bandwidth-printed"), [(0, 100_000), (20, 30_000), (50, 2_000), (80, 500_000)]);
    let names: std::collections::BTreeSet<&str> = presets.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names.len(), presets.len());
}

#[test]
fn a_schedule_does_not_know_links() {
    let timeline = Timeline { warmup_ns: SECOND, duration_ns: 10 * SECOND };
    let hash = |workload: &Workload| schedule::hash(workload, &Fleet::new(workload, 1), 7, &timeline);
    for name in ["smart-home", "supermarket", "request-reply"] {
        let plain = load::load(name, &LoadOptions::default()).unwrap();
        for link in ["satellite", "combench-bandwidth"] {
            let links = vec![LinkChoice::parse(link).unwrap()];
            let far = load::load(name, &LoadOptions { links, ..LoadOptions::default() }).unwrap();
            assert_ne!(plain, far);
            assert_eq!(hash(&plain), hash(&far), "{name} over {link}");
        }
    }
}

fn any_conditions() -> impl Strategy<Value = Conditions> {
    let chance = || prop_oneof![Just(0.0), (1u32..10_000).prop_map(|share| f64::from(share) / 10_000.0)];
    let loss = prop_oneof![
        Just(Loss::None),
        (1u32..10_000).prop_map(|share| Loss::Random(f64::from(share) / 10_000.0)),
        (chance(), 1u32..10_000, chance(), chance()).prop_map(|(to_bad, to_good, loss_good, loss_bad)| {
            Loss::GilbertElliott { to_bad, to_good: f64::from(to_good) / 10_000.0, loss_good, loss_bad }
        }),
    ];
    let rate = prop::option::of((1u64..=1_000_000_000_000, 1_500u64..=256_000_000))
        .prop_map(|rate| rate.map(|(bits_per_second, queue_bytes)| Rate { bits_per_second, queue_bytes }));
    let delay = (0u64..600_000_000_000, 0u64..600_000_000_000, any::<bool>(), any::<bool>()).prop_map(
        |(mean_ns, jitter_ns, is_normal, jitter_reorders)| Delay {
            mean_ns,
            jitter_ns: if is_normal { jitter_ns } else { jitter_ns.min(mean_ns) },
            distribution: if is_normal { Distribution::Normal } else { Distribution::Uniform },
            jitter_reorders,
        },
    );
    (delay, loss, rate, chance(), chance(), any::<bool>()).prop_map(|(delay, loss, rate, duplicate, reorder, down)| {
        Conditions { delay, loss, rate, duplicate, reorder, down }
    })
}

/// All keys as a user would write them.
fn written(conditions: &Conditions) -> String {
    let Delay { mean_ns, jitter_ns, distribution, jitter_reorders } = conditions.delay;
    let distribution = if distribution == Distribution::Normal { "normal" } else { "uniform" };
    let loss = match conditions.loss {
        Loss::None => "0%".to_owned(),
        Loss::Random(chance) => chance.to_string(),
        Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
            format!("{{to_bad: {to_bad}, to_good: {to_good}, loss_good: {loss_good}, loss_bad: {loss_bad}}}")
        }
    };
    let rate = conditions.rate.map_or("rate: none".to_owned(), |rate| {
        format!("rate: {}bit/s, queue: {}B", rate.bits_per_second, rate.queue_bytes)
    });
    let Conditions { duplicate, reorder, down, .. } = conditions;
    format!(
        "delay: {mean_ns}ns, jitter: {jitter_ns}ns, distribution: {distribution}, jitter_reorders: {jitter_reorders}, loss: {loss}, {rate}, duplicate: {duplicate}, reorder: {reorder}, down: {down}"
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(up in any_conditions(), down in any_conditions(), later in any_conditions()) {
        let text = format!(
            "{{up: {{{}}}, down: {{{}}}, series: [{{at: 5s, {}}}]}}",
            written(&up), written(&down), written(&later),
        );
        let link = link(&text);
        for (steps, first) in [(&link.up, up), (&link.down, down)] {
            prop_assert_eq!(steps[0], Step { at_ns: 0, conditions: first });
            prop_assert_eq!(steps.last().unwrap().conditions, later);
            prop_assert_eq!(steps.len(), if first == later { 1 } else { 2 });
        }
        for line in link.lines() {
            prop_assert!(!line.contains("inf") && !line.contains("NaN"), "{}", line);
        }
    }
}
