//! Requesters and responders: what is accepted, what is refused with which error, and what the plan counts.

use std::time::Duration;

use pubmark_model::fleet::Fleet;
use pubmark_model::load::{self, LoadOptions};
use pubmark_model::plan::{Plan, PlanOptions};
use pubmark_model::qos::Qos;
use pubmark_model::requests::{self, ProcessingTime, Requests, Responds};

use super::{read, refused, with};

/// A workload with a group of requesters and a group of responders with these additional keys.
fn both(requesters: &str, responders: &str) -> String {
    format!(
        "name: test
devices: []
subscribers: []
requesters:
  - {{name: asks, rate: 10/s, payload: 100B, topic: \"q/{{device}}\"{requesters}}}
responders:
  - {{name: answers, filters: [\"q/+\"]{responders}}}
"
    )
}

#[test]
fn defaults_of_a_group_are_those_of_mq_bench() {
    let workload = read(&both("", "")).unwrap();
    let asks = &workload.devices[0];
    assert_eq!(asks.requests, Some(Requests { timeout: Duration::from_secs(5), in_flight: 10 }));
    assert_eq!((asks.count, asks.qos), (1, Qos::BestEffort));
    let usual = Responds {
        reply_bytes: 1_024,
        processing: ProcessingTime::Fixed(Duration::ZERO),
        concurrency: 1,
        queue: 1_000,
    };
    assert_eq!(workload.subscribers[0].responds, Some(usual));
    assert!(workload.has_requests());
}

#[test]
fn every_key_of_a_group_is_read() {
    let text = both(
        ", count: 3, qos: 1, timeout: 250ms, in_flight: 40, arrival: poisson",
        ", count: 2, shared: workers, reply: 2KiB, concurrency: 4, queue: 0, qos: 1",
    );
    let workload = load::parse("test.yaml", &text, &LoadOptions { scale: 10, ..LoadOptions::default() }).unwrap();
    let (asks, answers) = (&workload.devices[0], &workload.subscribers[0]);
    assert_eq!(asks.requests, Some(Requests { timeout: Duration::from_millis(250), in_flight: 40 }));
    assert_eq!((asks.count, asks.in_flight_window, answers.count), (30, 40, 2));
    let responds = answers.responds.unwrap();
    assert_eq!((responds.reply_bytes, responds.concurrency, responds.queue), (2_048, 4, 0));
    let ms = Duration::from_millis;
    for (written, expected) in [
        ("5ms", ProcessingTime::Fixed(ms(5))),
        ("{mean: 5ms}", ProcessingTime::Exponential { mean: ms(5) }),
        ("{mean: 5ms, sd: 1ms}", ProcessingTime::Lognormal { mean: ms(5), sd: ms(1) }),
        ("{min: 1ms, max: 9ms}", ProcessingTime::Uniform { min: ms(1), max: ms(9) }),
    ] {
        let workload = read(&both("", &format!(", processing: {written}"))).unwrap();
        assert_eq!(workload.subscribers[0].responds.unwrap().processing, expected, "{written}");
    }
}

#[test]
fn impossible_values_are_refused_with_a_reason() {
    for (requesters, responders, expected) in [
        (", timeout: 0ms", "", "a time-out cannot be 0ms"),
        (", timeout: 11m", "", "a time-out cannot be 11m"),
        (", in_flight: 0", "", "`in_flight` cannot be 0"),
        (", churn: none", "", "unknown key `churn`"),
        (", retain: true", "", "unknown key `retain`"),
        ("", ", reply: 23B", "a reply cannot have 23B"),
        ("", ", concurrency: 0", "`concurrency` cannot be 0"),
        ("", ", processing: {sd: 1ms}", "a processing time has exactly one distribution"),
        ("", ", processing: {mean: 0ms, sd: 1ms}", "a processing time has exactly one distribution"),
        ("", ", processing: {min: 2ms, max: 1ms}", "the longest time is below the shortest"),
        ("", ", session: persistent", "unknown key `session`"),
        ("", ", count: 2", "several responders would reply to requests to `q/0-0`"),
    ] {
        let diagnostic = refused(&both(requesters, responders));
        assert!(diagnostic.to_string().contains(expected), "{requesters}{responders}: {diagnostic}");
    }
}

#[test]
fn every_request_has_exactly_one_responder() {
    let nobody = both("", "").replace("q/+", "other/+");
    assert!(refused(&nobody).to_string().contains("no responder replies to requests to `q/0-0`"));
    let alone = both("", "").replace("requesters:", "other:").replace("other:", "requesters: []\nunused:");
    assert!(refused(&alone).to_string().contains("unknown key `unused`"));
    let twice = format!("{}  - {{name: also, filters: [\"q/#\"]}}\n", both("", ""));
    assert!(refused(&twice).to_string().contains("several responders"));
    // Members of a shared group count as one responder; a plain subscriber does not reply.
    read(&both("", ", count: 5, shared: workers")).unwrap();
    read(&both("", "").replace("subscribers: []", "subscribers: [{filters: [\"#\"]}]")).unwrap();
    // A responder for each requester.
    let pairs = both(", count: 3", ", count: 3").replace("{device}", "{index}").replace("q/+", "q/{index}");
    read(&pairs).unwrap();
}

#[test]
fn responders_without_requesters_send_no_reply() {
    let text = "name: test
devices:
  - {name: sensor, every: 1s, payload: 100B}
subscribers: []
responders:
  - {name: answers, filters: [\"#\"]}
";
    assert!(refused(text).to_string().contains("responders without requesters"));
}

#[test]
fn names_are_unique_among_all_publishers() {
    let text = both("", "").replace("devices: []", "devices: [{name: asks, every: 1s, payload: 100B}]");
    assert!(refused(&text).to_string().contains("are called `asks`"));
}

#[test]
fn the_plan_counts_replies_in_both_directions() {
    let settings =
        [("requesters", "20"), ("rate", "5/s"), ("reply", "2KB"), ("payload", "100B"), ("processing", "4ms")];
    let workload = load::load("request-reply", &with(&settings)).unwrap();
    let plan = Plan::new(&workload, &PlanOptions::default());
    let requests = plan.requests.as_ref().unwrap();
    assert_eq!((requests.requesters, requests.responders, requests.in_flight), (20, 1, 200));
    let answers = requests.answers.unwrap();
    assert_eq!((answers.messages_per_s, answers.bytes_per_s), (100.0, 200_000.0));
    // Requests in and out, replies in and out.
    assert_eq!(plan.node.messages_per_s, Some(400.0));
    assert_eq!(plan.node.bytes_per_s, Some(2.0 * 10_000.0 + 2.0 * 200_000.0));
    assert_eq!(plan.largest_payload_bytes, 2_000);
    let share = plan.processing.unwrap().share;
    assert!((share - 0.4).abs() < 1e-9, "{share}");
}

#[test]
fn the_plan_takes_the_replies_of_requesters_and_not_of_other_groups() {
    let text = "name: test
devices:
  - {name: sensor, every: 1s, payload: 100B, count: 100, topic: \"s/{index}\"}
subscribers: []
requesters:
  - {name: asks, rate: 50/s, payload: 100B, count: 10, topic: \"q/{device}\"}
responders:
  - {name: answers, filters: [\"q/+\"]}
";
    let plan = Plan::new(&read(text).unwrap(), &PlanOptions::default());
    assert_eq!(plan.requests.unwrap().answers.unwrap().messages_per_s, 500.0);
}

#[test]
fn each_requester_has_the_filter_of_its_responder() {
    let text = both(", count: 2", "").replace(
        "responders:\n",
        "  - {name: asks-others, rate: 10/s, payload: 100B, topic: \"r/{device}/x\", count: 2}
responders:
  - {name: others, filters: [\"s/+\", \"r/#\", \"r/+/x\"]}\n",
    );
    let workload = read(&text).unwrap();
    let fleet = Fleet::new(&workload, 1);
    let heard = requests::responders(&workload, &fleet, &fleet.streams(&workload));
    let answerers = fleet.devices().iter().map(|device| &heard[&device.publisher]);
    let answerers: Vec<(&str, u32)> = answerers.map(|one| (&*one.filter, one.subscriber)).collect();
    assert_eq!(answerers, [("q/+", 1), ("q/+", 1), ("r/#", 0), ("r/#", 0)], "the first filter that hears it");
    assert_eq!(requests::received_by_non_responder(&workload, &fleet), None);
    let listened = both("", "").replace("subscribers: []", "subscribers: [{name: spy, filters: [\"#\"]}]");
    let workload = read(&listened).unwrap();
    let found = requests::received_by_non_responder(&workload, &Fleet::new(&workload, 1));
    assert_eq!(found, Some(("spy".to_owned(), "q/0-0".to_owned())));
    let unasked = load::load("hello", &LoadOptions::default()).unwrap();
    let fleet = Fleet::new(&unasked, 1);
    assert_eq!(requests::responders(&unasked, &fleet, &fleet.streams(&unasked)).len(), 0);
    assert_eq!(requests::received_by_non_responder(&unasked, &fleet), None);
}
