//! `--set`, `--qos`, `--scale`.

use pubmark_model::load::{self, LoadError, LoadOptions, ProblemKind};
use pubmark_model::payload::SizeDistribution;
use pubmark_model::qos::Qos;
use pubmark_model::workload::Workload;

use super::with;

fn set(workload: &str, settings: &[(&str, &str)]) -> Workload {
    load::load(workload, &with(settings)).unwrap()
}

#[test]
fn parameters_are_set_by_name() {
    let workload = set("pairs", &[("pairs", "7"), ("rate", "10/s"), ("payload", "64B")]);
    assert_eq!((workload.devices[0].count, workload.subscribers[0].count), (7, 7));
    assert_eq!(workload.devices[0].arrival.mean_rate_per_s(), Some(10.0));
    assert_eq!(workload.devices[0].size, SizeDistribution::Fixed(64));
    for name in ["pairs", "fan-in", "fan-out"] {
        assert_eq!(set(name, &[("arrival", "flood")]).devices[0].arrival.mean_rate_per_s(), None, "{name}");
    }
}

#[test]
fn everything_else_is_set_by_path() {
    let workload = set(
        "smart-home",
        &[
            ("defaults.qos", "1"),
            ("devices.0.payload", "1KB"),
            ("devices.smart-home/bp_sensor.rate", "1/s"),
            ("device_types.smart-home/weather_sensor.every", "2s"),
            ("devices.smart-home/sleep_sensor.payload.sd", "20%"),
            ("defaults.churn", "none"),
            ("subscribers.everything.count", "3"),
            ("placement.devices", "replicate"),
            ("name", "my-home"),
            ("defaults.topic", "{type}/x"),
        ],
    );
    assert_eq!(workload.devices[0].size, SizeDistribution::Fixed(1000));
    assert!(workload.devices.iter().all(|group| group.qos == Qos::AtLeastOnce && group.churn.is_none()));
    assert_eq!(workload.devices[1].arrival.mean_rate_per_s(), Some(1.0));
    assert_eq!(workload.devices[2].arrival.mean_rate_per_s(), Some(0.5));
    assert_eq!(workload.subscribers[0].count, 3);
    assert_eq!(workload.devices[0].topic.0, "{type}/x");
}

#[test]
fn a_part_of_an_inherited_form_is_set() {
    let workload = set("smart-home", &[("devices.smart-home/smoke_sensor.payload.sd", "20%")]);
    assert_eq!(workload.devices[0].size, SizeDistribution::Normal { mean: 172.65, sd: 172.65 * 0.2, floor: 0 });
}

#[test]
fn wrong_settings_are_shown_in_the_option() {
    for (workload, key, value, kind, underlined, hint) in [
        ("pairs", "pais", "7", ProblemKind::UnknownParameter, "pais", "did you mean `pairs`?"),
        ("pairs", "rate", "10 per s", ProblemKind::BadUnit, "10 per s", "write `10/s`"),
        ("smart-home", "rate", "1/s", ProblemKind::UnknownParameter, "rate", "defaults.qos=1"),
        ("smart-home", "devices.0.paylod", "1KB", ProblemKind::UnknownKey, "paylod", "did you mean `payload`?"),
        ("smart-home", "devices.99.payload", "1KB", ProblemKind::UnknownName, "99", "`smart-home/smoke_sensor`"),
        ("smart-home", "defaults.qos.level", "1", ProblemKind::WrongKind, "qos", ""),
        ("smart-home", "name.x", "1", ProblemKind::UnknownKey, "x", "set `name` itself"),
        ("smart-home", "defaults.qos", "3", ProblemKind::ImpossibleValue, "3", "levels are"),
        ("smart-home", "device_types.home/x.every", "1s", ProblemKind::UnknownDeviceType, "home/x", "`smart-home/"),
        (
            "smart-home",
            "published.defaults.qos",
            "1",
            ProblemKind::UnknownParameter,
            "published.defaults.qos",
            "defaults.qos=1",
        ),
        ("smart-home", "", "1", ProblemKind::UnknownParameter, "", ""),
    ] {
        let Err(LoadError::Wrong(diagnostic)) = load::load(workload, &with(&[(key, value)])) else {
            panic!("{key}={value} was taken");
        };
        let shown = format!("{:?}", miette::Report::new((*diagnostic).clone()));
        assert_eq!(diagnostic.kind(), kind, "{shown}");
        assert_eq!(diagnostic.underlined(), Some(underlined), "{shown}");
        assert!(diagnostic.hint().unwrap_or_default().contains(hint), "{shown}");
    }
}

#[test]
fn scale_and_level_apply_to_all() {
    let options = LoadOptions { scale: 3, qos: Some(Qos::ExactlyOnce), ..LoadOptions::default() };
    let home = load::load("home-2x", &options).unwrap();
    assert_eq!((home.scale, home.name.as_str()), (6, "smart-home-2x"));
    assert!(home.devices.iter().all(|group| group.count == 6 && group.qos == Qos::ExactlyOnce));
    assert_eq!((home.subscribers[0].count, home.subscribers[0].qos), (1, Qos::ExactlyOnce));
    let pairs = load::load("pairs", &options).unwrap();
    assert_eq!((pairs.devices[0].count, pairs.subscribers[0].count), (300, 300));
    let huge = LoadOptions { scale: u32::MAX, ..LoadOptions::default() };
    assert!(matches!(load::load("smart-city-10x", &huge), Err(LoadError::Wrong(_))));
}
