//! Records of schema 1: where their fields are in schema 2.
//!
//! The conversion works on the JSON only and follows three tables: [`RUN`], [`EXPERIMENT`] and [`CAPACITY`]. Fields
//! that schema 1 did not have remain absent.

use serde_json::{Map, Value};

/// One difference between the schemas.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Objects that change, as a path from the record: `by_type[]` is every element of that list; the empty path is the
    /// record.
    of: &'static str,
    /// Path of the value in such an object.
    from: &'static str,
    /// Its new path in the same object.
    to: &'static str,
    /// Conversion of the value.
    how: How,
}

/// Conversion of a value.
#[derive(Clone, Copy, Debug)]
enum How {
    /// The value is unchanged.
    Moved,
    /// The keys of a distribution get a unit.
    Distribution,
    /// The same, and the distribution becomes the upper bound of a latency.
    Bounds,
    /// The value remains at its path, and is copied to `to` if that is missing.
    Copied,
    /// The side of a thread is derived from the thread's name, which remains.
    SideOfThread,
    /// Blanks in a word are replaced by hyphens.
    Word,
}

const fn moved(of: &'static str, from: &'static str, to: &'static str) -> Step {
    Step { of, from, to, how: How::Moved }
}

const fn distribution(of: &'static str, from: &'static str, to: &'static str) -> Step {
    Step { of, from, to, how: How::Distribution }
}

const fn bounds(of: &'static str, from: &'static str, to: &'static str) -> Step {
    Step { of, from, to, how: How::Bounds }
}

/// Differences of `record.json`, in the order of conversion: inside of groups first.
pub const RUN: &[Step] = &[
    // Inside of objects that are moved later.
    moved("verdict.checks[]", "finding", "text"),
    moved("settings", "awake", "cpu_idle_disabled"),
    moved("nodes[].machine", "awake", "cpu_idle_disabled"),
    moved("requests", "books", "outcomes"),
    moved("requests.by_group[]", "books", "outcomes"),
    moved("links.groups[].up.checks[]", "kept", "as_requested"),
    moved("links.groups[].down.checks[]", "kept", "as_requested"),
    distribution("connections", "connect_us", "connect_time"),
    distribution("tls", "full_us", "full_handshake"),
    distribution("tls", "resumed_us", "resumed_handshake"),
    distribution("tls", "opening_us", "opening"),
    bounds("reactions", "chain_latency_us", "chain_latency"),
    bounds("requests", "round_trip_us", "round_trip"),
    bounds("requests", "service_round_trip_us", "service_round_trip"),
    bounds("requests", "travel_us", "travel"),
    distribution("requests", "waiting_us", "waiting"),
    distribution("requests", "responder_lag_us", "responder_lag"),
    distribution("requests", "receive_lateness_us", "receive_lateness"),
    bounds("requests.by_group[]", "round_trip_us", "round_trip"),
    distribution("links", "lateness_us", "lateness"),
    Step { of: "links", from: "back_end", to: "back_end", how: How::Word },
    bounds("residence.rows[].parts", "device_us", "device"),
    bounds("residence.rows[].parts", "network_up_us", "network_up"),
    bounds("residence.rows[].parts", "system_us", "system"),
    bounds("residence.rows[].parts", "network_down_us", "network_down"),
    bounds("residence.rows[].parts", "subscriber_us", "subscriber"),
    bounds("residence.rows[].parts", "rest_us", "rest"),
    bounds("residence.rows[].parts", "whole_us", "whole"),
    bounds("by_type[]", "latency_us", "latency"),
    bounds("by_type[]", "service_latency_us", "service_latency"),
    distribution("by_type[]", "backpressure_us", "backpressure"),
    bounds("by_pair[]", "latency_us", "latency"),
    moved("series[]", "p50_us", "latency.upper.p50_us"),
    moved("series[]", "p50_width_s", "latency.upper.p50_width_s"),
    moved("series[]", "p99_us", "latency.upper.p99_us"),
    moved("series[]", "p99_width_s", "latency.upper.p99_width_s"),
    moved("series[]", "max_us", "latency.upper.max_us"),
    moved("series[]", "max_lag_us", "max_scheduler_lag_us"),
    Step { of: "generator.shards[]", from: "name", to: "side", how: How::SideOfThread },
    // Identity of the run.
    moved("", "run", "run.name"),
    moved("", "run_id", "run.id"),
    moved("", "settings.repetition", "run.repetition"),
    moved("", "settings.repetitions", "run.repetitions"),
    moved("", "started_at", "run.started_at"),
    moved("", "status", "run.status"),
    moved("", "pubmark_version", "run.pubmark_version"),
    moved("", "command", "run.command"),
    moved("", "files", "run.files"),
    // Protocols.
    moved("", "protocol", "protocol.publish"),
    moved("", "subscribe_protocol", "protocol.subscribe"),
    Step { of: "", from: "protocol.publish", to: "protocol.subscribe", how: How::Copied },
    moved("", "sent_means", "protocol.sent_means"),
    moved("", "deviations", "settings.deviations"),
    // Connections.
    moved("", "granted_qos_lower", "connections.granted_qos_lower"),
    moved("", "resent", "connections.resent"),
    moved("", "tls", "connections.tls"),
    moved("", "wills", "connections.wills"),
    // Messages.
    moved("", "too_large", "delivery.too_large"),
    moved("", "sizes_raised", "delivery.sizes_raised"),
    moved("", "socket_unsent_bytes", "delivery.at_end.socket_unsent_bytes"),
    moved("", "held_bytes", "delivery.at_end.held_bytes"),
    moved("", "system_unsent_bytes", "delivery.at_end.system_unsent_bytes"),
    moved("", "system_drain_wait_ns", "delivery.at_end.system_drain_wait_ns"),
    moved("", "reactions", "delivery.reactions"),
    moved("", "filtered", "delivery.filtered"),
    moved("", "pairs", "delivery.pairs"),
    // Latencies.
    bounds("", "latency_us", "latency.total"),
    bounds("", "service_latency_us", "latency.service"),
    moved("", "without_write_start", "latency.without_write_start"),
    distribution("", "scheduler_lag_us", "latency.scheduler_lag"),
    distribution("", "backpressure_us", "latency.backpressure"),
    distribution("", "receive_lateness_us", "latency.receive_lateness"),
    distribution("", "kernel_receive_lateness_us", "latency.kernel_receive_lateness"),
    moved("", "residence", "latency.breakdown"),
    // Cost.
    moved("", "resources.system", "cost.system"),
    moved("", "resources.generator", "cost.generator"),
    moved("", "resources.groups", "cost.groups"),
    moved("", "resources.host", "cost.host"),
    moved("", "resources.limits", "cost.limits"),
    moved("", "generator.shards", "cost.threads"),
    moved("", "efficiency", "cost.efficiency"),
    // Conditions and tables.
    moved("", "links", "conditions.links"),
    moved("", "faults", "conditions.faults"),
    moved("", "by_type", "tables.by_type"),
    moved("", "nodes", "tables.nodes"),
    moved("", "lost_workers", "tables.lost_workers"),
    moved("", "by_pair", "tables.by_pair"),
    moved("", "series", "tables.series"),
    moved("", "resource_series", "tables.resource_series"),
    moved("", "curves", "tables.curves"),
];

/// Differences of `experiment.json`.
pub const EXPERIMENT: &[Step] = &[bounds("cells[]", "latency_us", "latency")];

/// Differences of `capacity.json`.
pub const CAPACITY: &[Step] = &[
    moved("trials[]", "p50_us", "latency.upper.p50_us"),
    moved("trials[]", "p99_us", "latency.upper.p99_us"),
    moved("trials[]", "max_us", "latency.upper.max_us"),
];

/// Keys of a distribution that had no unit in schema 1.
const WITHOUT_UNIT: [&str; 11] = ["mean", "stddev", "min", "p25", "p50", "p75", "p90", "p95", "p99", "p999", "max"];

/// Converts a record to schema 2 according to one of the tables.
pub fn converted(steps: &[Step], mut record: Value) -> Value {
    for step in steps {
        for_each(&mut record, step.of, &|object| apply(step, object));
    }
    put(&mut record, "schema_version", Value::from(2));
    record
}

/// Calls `change` for every object at a path; missing objects and `null` are skipped.
fn for_each(value: &mut Value, path: &str, change: &dyn Fn(&mut Value)) {
    if path.is_empty() {
        if value.is_object() {
            change(value);
        }
        return;
    }
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match first.strip_suffix("[]") {
        Some(list) => {
            let elements = value.get_mut(list).and_then(Value::as_array_mut);
            elements.into_iter().flatten().for_each(|element| for_each(element, rest, change));
        }
        None => {
            if let Some(inner) = value.get_mut(first) {
                for_each(inner, rest, change);
            }
        }
    }
}

fn apply(step: &Step, object: &mut Value) {
    match step.how {
        How::Copied => {
            if get(object, step.to).is_none()
                && let Some(value) = get(object, step.from).cloned()
            {
                put(object, step.to, value);
            }
        }
        How::SideOfThread => {
            let name = get(object, step.from).and_then(Value::as_str).unwrap_or_default();
            let side = if name.starts_with("subscriber") { "subscribers" } else { "devices" };
            put(object, step.to, Value::from(side));
        }
        _ => {
            if let Some(value) = take(object, step.from) {
                put(object, step.to, changed(step.how, value));
            }
        }
    }
}

fn changed(how: How, value: Value) -> Value {
    match (how, value) {
        (How::Distribution, Value::Object(old)) => with_units(old),
        (How::Bounds, Value::Object(old)) => Value::Object(Map::from_iter([("upper".to_owned(), with_units(old))])),
        (How::Word, Value::String(word)) => Value::from(word.replace(' ', "-")),
        (_, value) => value,
    }
}

fn with_units(old: Map<String, Value>) -> Value {
    let named = |key: String| if WITHOUT_UNIT.contains(&key.as_str()) { format!("{key}_us") } else { key };
    old.into_iter().map(|(key, value)| (named(key), value)).collect()
}

fn get<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |inner, key| inner.get(key))
}

fn take(object: &mut Value, path: &str) -> Option<Value> {
    match path.rsplit_once('.') {
        None => object.as_object_mut()?.remove(path),
        Some((outer, key)) => {
            let inner = outer.split('.').try_fold(object, |inner, key| inner.get_mut(key))?;
            inner.as_object_mut()?.remove(key)
        }
    }
}

/// Puts a value at a path; missing objects on the path are created.
fn put(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for key in path.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Some(map) = place.as_object_mut() else { return };
        place = map.entry(key).or_insert(Value::Null);
    }
    *place = value;
}
