//! Cells whose system is already running: what its URL determines, and which settings need a system that pubmark
//! starts.

use pubmark_model::experiment::{EndpointChoice, PlannedCell, Settings};
use pubmark_model::topology::Topology;
use pubmark_protocols as protocols;

/// The scheme of a URL, lowercase; empty if it has none.
fn scheme(url: &str) -> String {
    url.split_once("://").map_or_else(String::new, |(scheme, _)| scheme.to_ascii_lowercase())
}

/// Protocols whose endpoints have this scheme, in the order of the protocol table.
pub fn offered(endpoint: &EndpointChoice) -> Vec<&'static str> {
    let scheme = scheme(&endpoint.url);
    let has_scheme =
        |name: &&str| protocols::find(name).is_some_and(|own| own.capabilities.schemes.contains(&&*scheme));
    protocols::names().into_iter().filter(has_scheme).collect()
}

/// Does the scheme require TLS?
fn is_encrypted(endpoint: &EndpointChoice) -> bool {
    let scheme = scheme(&endpoint.url);
    protocols::of_scheme(&scheme).is_some_and(|own| {
        let over_websocket = own.capabilities.features.websocket.is_some_and(|over| over.schemes[1] == scheme);
        own.capabilities.tls_schemes.contains(&&*scheme) || over_websocket
    })
}

/// The setting of a cell that needs a system that pubmark starts, as a reason; `None` if there is none.
pub fn refusal(planned: &PlannedCell, protocol: &str) -> Option<String> {
    let Settings { endpoint, profile, limit, topology, tls, .. } = &planned.settings;
    let endpoint = endpoint.as_ref()?;
    let of_started =
        [("profile", profile.is_some()), ("limit", limit.is_some()), ("topology", *topology != Topology::ONE)];
    if let Some((axis, _)) = of_started.into_iter().find(|(_, is_asked)| *is_asked) {
        return Some(format!(
            "the axis `{axis}` is for systems that pubmark starts, and `{}` runs already: give `{axis}` to each system that is started",
            endpoint.url
        ));
    }
    let is_encrypted = is_encrypted(endpoint);
    if planned.values.contains_key("tls") && *tls != is_encrypted {
        let (is, not) = if is_encrypted { ("", " not") } else { (" not", "") };
        return Some(format!("`{}` is{is} encrypted, as its scheme says, and this cell is{not} to be", endpoint.url));
    }
    let offered = offered(endpoint);
    (!offered.contains(&protocol))
        .then(|| format!("`{}` has the scheme of {}, not of {protocol}", endpoint.url, offered.join(", ")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::experiment::{cells, parse};

    use super::*;

    fn refusals(axes: &str, protocol: &str) -> Vec<Option<String>> {
        let text = format!("{{name: t, workload: hello, axes: {{{axes}}}}}");
        let experiment = parse("t.yaml", &text, &|_, _| Ok(())).unwrap();
        cells(&experiment).iter().map(|planned| refusal(planned, protocol)).collect()
    }

    #[test]
    fn an_endpoint_has_nothing_that_only_a_start_could_give() {
        let plain = "system: [mosquitto, {label: ours, endpoint: 'mqtt://host'}]";
        assert_eq!(refusals(plain, "mqtt311"), [None, None]);
        let found = refusals(&format!("{plain}, limit: [none, cpu=1]"), "mqtt5");
        assert_eq!(found[..3], [None, None, None], "no limit is what it has");
        assert!(found[3].as_ref().unwrap().starts_with("the axis `limit` is for systems that pubmark starts"));
        let found = refusals(&format!("{plain}, tls: [false, true]"), "mqtt5");
        assert_eq!(found[..3], [None, None, None]);
        assert_eq!(
            found[3].as_deref(),
            Some("`mqtt://host` is not encrypted, as its scheme says, and this cell is to be")
        );
        let found = refusals("system: {label: ours, endpoint: 'mqtts://host'}, tls: [false, true]", "mqtt5");
        assert!(found[0].as_ref().unwrap().contains("is encrypted") && found[1].is_none(), "{found:?}");
        let found = refusals(plain, "nats");
        assert_eq!(found[1].as_deref(), Some("`mqtt://host` has the scheme of mqtt5, mqtt311, not of nats"));
        let found = refusals(&format!("{plain}, profile: default"), "mqtt5");
        assert!(found[1].as_ref().unwrap().contains("`profile`"), "which profile it has, nobody knows");
    }
}
