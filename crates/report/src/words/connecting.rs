//! Connection establishment in words.

use pubmark_record::connections::{AgreedOn, RampUp, TlsFigures};
use pubmark_record::record::{Connections, Side, Summary};

use crate::numbers::{counted, significant, time};

/// Session establishment of one side: `1,000 devices in 0.512 s (1,950/s)`.
pub fn ramp_up(ramp: &RampUp) -> String {
    let rate = ramp.per_s.map_or_else(String::new, |rate| format!(" ({}/s)", significant(rate)));
    let (one, many) = match ramp.side {
        Side::Devices => ("device", "devices"),
        Side::Subscribers => ("subscriber", "subscribers"),
    };
    format!("{} in {}{rate}", counted(ramp.accepted, one, many), time(Some(ramp.seconds * 1e6)))
}

/// Session establishment of both sides; `None` without sessions.
pub fn ramp_ups(connections: &Connections) -> Option<String> {
    let sides: Vec<String> = connections.ramp_up.iter().map(ramp_up).collect();
    (!sides.is_empty()).then(|| sides.join(", "))
}

/// TLS handshakes in one line.
pub fn tls(figures: &TlsFigures) -> String {
    let mut parts = vec![handshakes(figures.full, "full", figures.full_handshake.as_ref())];
    parts.push(match (figures.resumed, figures.resumption) {
        (0, Some(false)) => "resumption off".to_owned(),
        (0, Some(true)) => "none resumed".to_owned(),
        (0, None) => "resumption up to the client library".to_owned(),
        (resumed, _) => handshakes(resumed, "resumed", figures.resumed_handshake.as_ref()),
    });
    parts.extend(figures.agreed.first().map(agreed_on));
    parts.join("; ")
}

fn handshakes(number: u64, kind: &str, times: Option<&Summary>) -> String {
    let told = counted(number, &format!("{kind} handshake"), &format!("{kind} handshakes"));
    times.map_or_else(|| told.clone(), |times| format!("{told}, {}", middle_and_largest(times)))
}

/// `p50 1.21 ms, largest 9.33 ms`; without a median if there are too few samples.
pub fn middle_and_largest(times: &Summary) -> String {
    let largest = format!("largest {}", time(Some(times.max)));
    times.p50.map_or_else(|| largest.clone(), |median| format!("p50 {}, {largest}", time(Some(median))))
}

/// Version and algorithms.
pub fn agreed_on(agreed: &AgreedOn) -> String {
    let group = agreed.group.as_ref().map_or_else(String::new, |group| format!(" over {group}"));
    format!("{} {}{group}", agreed.version, agreed.suite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tls_took_fits_a_line() {
        let agreed = AgreedOn::new("TLSv1_3", "TLS13_AES_256_GCM_SHA384", Some("X25519"), false, 12);
        let mut figures = TlsFigures { full: 12, agreed: vec![agreed], ..TlsFigures::default() };
        assert!(tls(&figures).contains("; resumption up to the client library; "), "{}", tls(&figures));
        figures.resumption = Some(false);
        assert_eq!(tls(&figures), "12 full handshakes; resumption off; TLS 1.3 TLS_AES_256_GCM_SHA384 over X25519");
        (figures.resumption, figures.full) = (Some(true), 1);
        assert!(tls(&figures).starts_with("1 full handshake; none resumed;"), "{}", tls(&figures));
        figures.resumed = 1_000;
        assert!(tls(&figures).contains("1,000 resumed handshakes"), "{}", tls(&figures));
    }

    #[test]
    fn a_ramp_shows_its_rate_where_it_has_one() {
        assert_eq!(ramp_up(&RampUp::new(Side::Devices, 1_000, 0.5)), "1,000 devices in 500 ms (2,000/s)");
        assert_eq!(ramp_up(&RampUp::new(Side::Subscribers, 1, 0.0005)), "1 subscriber in 0.500 ms");
    }
}
