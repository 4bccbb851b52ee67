//! From what probes found to checks.

use std::collections::HashMap;

use pubmark_model::link::{Conditions, Distribution, Loss, Rate};

use super::check::{Check, Property};
use super::probe::{Arrival, Path, Plan, Round, SMALLEST};
use super::statistics::{NORMAL_99, binomial_interval, delay_moments, is_conclusive, loss_interval, loss_share};
use crate::error::LinkError;
use crate::network::BackEnd;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// Longest time of sending for a property.
const SEND_FOR_NS: u64 = 800 * MS;

/// Probes of the delay: more would only narrow what the machine's own noise widens.
const DELAY_PROBES: u64 = 200;
/// Fewer samples are not sufficient for a mean.
const LEAST_DELAY_PROBES: u64 = 4;
/// What the machine adds to a delay: two wake-ups and a system call.
const DELAY_SLACK_NS: f64 = 50_000.0;
/// Allowed beside it.
const DELAY_SHARE: f64 = 0.02;

const LOSS_PROBES: u64 = 3_000;
const LOSS_SPACING_NS: u64 = 250_000;

/// How far a rate may be off.
const RATE_SHARE: f64 = 0.01;
const RATE_PROBES: u64 = 2_500;
/// Unless the network has a smaller MTU: a probe is one packet.
const LARGEST_RATE_PROBE: u64 = 1_400;
/// A rate that cannot send four probes in this time is too slow to be measured.
const SLOWEST_NS: u64 = 1_500 * MS;
/// Longest wait for the last probe of a property.
const LONGEST_WAIT_NS: u64 = 5 * SECOND;
/// How much later than that a probe may be received.
const SLACK_NS: u64 = 500 * MS;
/// Above this, one sender cannot saturate a link.
const FASTEST_BITS: u64 = 400_000_000;

/// Time that a packet takes at the rate, ns.
fn service_ns(conditions: &Conditions, bytes: u64) -> u64 {
    conditions.rate.map_or(0, |rate| (bytes * 8 * SECOND).div_ceil(rate.bits_per_second.max(1)))
}

/// Why probes that may be under way for this long are not sent: the run would wait for them. `None` if they are sent.
fn too_slow(wait_ns: u64) -> Option<String> {
    let way_ns = wait_ns.saturating_sub(SLACK_NS);
    (way_ns > LONGEST_WAIT_NS).then(|| format!("a probe may take {} s", way_ns / SECOND))
}

/// When a probe has come that comes at all, ns: its way, and a queue of `queued` packets of `bytes` before it.
fn patience_ns(conditions: &Conditions, bytes: u64, queued: u64) -> u64 {
    let widths = if conditions.delay.distribution == Distribution::Uniform { 1 } else { 6 };
    let delay = conditions.delay.mean_ns.saturating_add(conditions.delay.jitter_ns.saturating_mul(widths));
    let queue = service_ns(conditions, bytes).saturating_mul(queued + 1);
    delay.saturating_add(queue).saturating_add(SLACK_NS)
}

/// Nothing must come through a link that is down.
pub fn down(path: &mut Path<'_>) -> Result<Vec<Check>, LinkError> {
    let plan = Plan {
        count: 20,
        bytes: SMALLEST,
        spacing_ns: MS,
        catches_up: false,
        send_for_ns: SEND_FOR_NS,
        wait_ns: 100 * MS,
    };
    let round = path.probe(plan)?;
    let received = round.arrivals.len() as f64;
    Ok(vec![Check::judged(Property::Down, 0.0, received, (0.0, 0.0), round.sent)])
}

/// Mean delay of packets that don't wait for each other.
pub fn delay(path: &mut Path<'_>, conditions: &Conditions) -> Result<Check, LinkError> {
    let (mean, deviation) = delay_moments(&conditions.delay);
    let service = service_ns(conditions, SMALLEST as u64);
    let asked = mean * (1.0 - conditions.reorder) + service as f64;
    // With order preserved, a late packet delays the next one unless that follows later than the width of the jitter.
    let apart = if conditions.delay.jitter_reorders { 0 } else { conditions.delay.jitter_ns.saturating_mul(4) };
    let spacing_ns = (2 * service).max(apart).max(2 * MS);
    let count = (SLOWEST_NS / spacing_ns).min(DELAY_PROBES);
    if count < LEAST_DELAY_PROBES {
        let why = format!("probes would have to be {} ms apart", spacing_ns / MS);
        return Ok(Check::unverified(Property::Delay, asked, why));
    }
    let wait_ns = patience_ns(conditions, SMALLEST as u64, 1);
    if let Some(why) = too_slow(wait_ns) {
        return Ok(Check::unverified(Property::Delay, asked, why));
    }
    let plan = Plan { count, bytes: SMALLEST, spacing_ns, catches_up: false, send_for_ns: SLOWEST_NS, wait_ns };
    let round = path.probe(plan)?;
    let samples = delay_samples(&round.arrivals, conditions);
    let arrived = samples.len() as f64;
    if arrived < LEAST_DELAY_PROBES as f64 {
        let why = format!("{arrived} of {} probes arrived", round.sent);
        return Ok(Check::unverified(Property::Delay, asked, why));
    }
    let sum: f64 = samples.iter().sum();
    // Some are sent ahead, the others take their time: that spreads the sample as well.
    let split = mean * libm::sqrt(conditions.reorder * (1.0 - conditions.reorder));
    let spread = libm::sqrt(deviation * deviation + split * split);
    let slack = DELAY_SHARE * asked + DELAY_SLACK_NS + NORMAL_99 * spread / libm::sqrt(arrived);
    Ok(Check::judged(Property::Delay, asked, sum / arrived, (asked - slack, asked + slack), round.sent))
}

/// Times in flight, ns, of arrivals that did not wait for each other. At a rate a copy waits for its original, and where the order is
/// preserved behind it; the first of the two may be the copy, with a shorter delay by jitter or without one, so that first arrivals
/// would be too early. Whether a probe is duplicated has nothing to do with its delay: only those that came once count, and first
/// arrivals where too few came once. Without a rate and with delays of their own, all arrivals are independent samples.
fn delay_samples(arrivals: &[Arrival], conditions: &Conditions) -> Vec<f64> {
    let delay = &conditions.delay;
    let are_independent = conditions.rate.is_none() && (delay.jitter_reorders || delay.jitter_ns == 0);
    let mut times: HashMap<u64, u64> = HashMap::new();
    arrivals.iter().for_each(|arrival| *times.entry(arrival.number).or_default() += 1);
    let singles = times.values().filter(|times| **times == 1).count() as u64;
    let counts = |arrival: &&Arrival| {
        if are_independent {
            return true;
        }
        // Taken out with the first arrival, so that a later one of the same number is not found.
        let times = times.remove(&arrival.number);
        times.is_some_and(|times| times == 1 || singles < LEAST_DELAY_PROBES)
    };
    arrivals.iter().filter(counts).map(|arrival| arrival.received_ns as f64 - arrival.sent_ns as f64).collect()
}

/// Conditions that no probe measures, so that nobody takes them for verified.
pub fn unmeasured(conditions: &Conditions) -> Vec<Check> {
    let burst = match conditions.loss {
        Loss::GilbertElliott { to_bad, to_good, .. } if to_bad > 0.0 && to_good > 0.0 => 1.0 / to_good,
        _ => 0.0,
    };
    [
        (Property::Jitter, conditions.delay.jitter_ns as f64, "probes measure the mean delay only"),
        (Property::Reordering, conditions.reorder, "probes are too far apart to overtake each other"),
        (Property::BurstLength, burst, "probes measure the share of lost packets only"),
    ]
    .into_iter()
    .filter(|(_, asked, _)| *asked > 0.0)
    .map(|(property, asked, why)| Check::unverified(property, asked, why))
    .collect()
}

/// Losses and duplicates of the kernel's emulation if it has both, which probes cannot tell apart: a packet that is drawn for both
/// arrives once. `None` if they can.
pub fn copies_for_losses(conditions: &Conditions, back_end: BackEnd) -> Option<Vec<Check>> {
    let both = conditions.loss != Loss::None && conditions.duplicate > 0.0;
    let why = "a packet that is drawn both lost and duplicated arrives once";
    (both && back_end == BackEnd::KernelNetem).then(|| unverified_shares(conditions, why))
}

/// Shares of packets that are lost and that come twice, without a measurement.
fn unverified_shares(conditions: &Conditions, why: &str) -> Vec<Check> {
    let mut checks = vec![Check::unverified(Property::Loss, loss_share(conditions.loss), why)];
    if conditions.duplicate > 0.0 {
        checks.push(Check::unverified(Property::Duplicates, conditions.duplicate, why));
    }
    checks
}

/// Shares of packets that are lost and that come twice.
pub fn loss(path: &mut Path<'_>, conditions: &Conditions, probes: u64) -> Result<Vec<Check>, LinkError> {
    let spacing_ns = (2 * service_ns(conditions, SMALLEST as u64)).max(LOSS_SPACING_NS);
    let send_for_ns = SEND_FOR_NS * probes.div_ceil(LOSS_PROBES);
    let count = (send_for_ns / spacing_ns).clamp(1, probes);
    let wait_ns = patience_ns(conditions, SMALLEST as u64, 1);
    if let Some(why) = too_slow(wait_ns) {
        return Ok(unverified_shares(conditions, &why));
    }
    let plan = Plan { count, bytes: SMALLEST, spacing_ns, catches_up: false, send_for_ns, wait_ns };
    let round = path.probe(plan)?;
    let mut numbers: Vec<u64> = round.arrivals.iter().map(|arrival| arrival.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let (first, all) = (numbers.len() as u64, round.arrivals.len() as u64);
    let mut checks = vec![judge_loss(conditions.loss, &round, first)];
    if conditions.duplicate > 0.0 {
        checks.push(judge_duplicates(conditions.duplicate, all - first, first));
    }
    Ok(checks)
}

fn judge_loss(loss: Loss, round: &Round, first: u64) -> Check {
    let asked = loss_share(loss);
    if !is_conclusive(loss, round.sent) {
        return Check::unverified(Property::Loss, asked, format!("{} probes are too few to tell", round.sent));
    }
    let sent = round.sent as f64;
    let (least, most) = loss_interval(loss, round.sent);
    let lost = round.sent - first.min(round.sent);
    Check::judged(Property::Loss, asked, lost as f64 / sent, (least as f64 / sent, most as f64 / sent), round.sent)
}

fn judge_duplicates(asked: f64, twice: u64, first: u64) -> Check {
    if !is_conclusive(Loss::Random(asked), first) {
        return Check::unverified(Property::Duplicates, asked, format!("{first} probes are too few to tell"));
    }
    let (least, most) = binomial_interval(first, asked);
    let share = |count: u64| count as f64 / first as f64;
    Check::judged(Property::Duplicates, asked, share(twice), (share(least), share(most)), first)
}

/// IP bytes of a probe of the rate, for a link that carries `half_second_bytes` in half a second.
fn rate_probe_bytes(half_second_bytes: u64, mtu: u64) -> u64 {
    (half_second_bytes / 40).clamp(SMALLEST as u64, LARGEST_RATE_PROBE.min(mtu))
}

/// Bits a second while the link is busy.
pub fn rate(path: &mut Path<'_>, conditions: &Conditions, rate: Rate) -> Result<Check, LinkError> {
    let asked = rate.bits_per_second as f64;
    let unverified = |why: String| Ok(Check::unverified(Property::Rate, asked, why));
    if rate.bits_per_second > FASTEST_BITS {
        return unverified("too fast for one sender to fill".to_owned());
    }
    let half_second_bytes = rate.bits_per_second / 16;
    let bytes = rate_probe_bytes(half_second_bytes, path.mtu());
    let service = service_ns(conditions, bytes);
    let count = (half_second_bytes / bytes).clamp(5, RATE_PROBES);
    if 4 * service > SLOWEST_NS {
        return unverified(format!("four probes take {} ms", 4 * service / MS));
    }
    if conditions.reorder > 0.0 && conditions.delay.mean_ns > 0 {
        return unverified("probes sent ahead blur it".to_owned());
    }
    // What fits into the queue is sent at once; beyond, a fifth faster than the link.
    let spacing_ns = if count * bytes <= rate.queue_bytes { 0 } else { service * 5 / 6 };
    let wait_ns = patience_ns(conditions, bytes, count);
    if let Some(why) = too_slow(wait_ns) {
        return unverified(why);
    }
    let plan = Plan { count, bytes: bytes as usize, spacing_ns, catches_up: true, send_for_ns: SLOWEST_NS, wait_ns };
    let round = path.probe(plan)?;
    let (busy, packets) = busy_time(&round.arrivals, conditions, service);
    let expected = (service * count.min(round.sent)) as f64;
    if busy < expected / 4.0 || packets < 3 {
        return unverified("the probes did not keep the link busy".to_owned());
    }
    let (_, deviation) = delay_moments(&conditions.delay);
    if deviation > busy * RATE_SHARE / 4.0 {
        return unverified("jitter blurs it".to_owned());
    }
    let measured = (packets * bytes * 8) as f64 / (busy / SECOND as f64);
    let slack = asked * RATE_SHARE;
    Ok(Check::judged(Property::Rate, asked, measured, (asked - slack, asked + slack), round.sent))
}

/// Time between arrivals during which the link was busy, ns, and the packets that it took: pairs of which the second
/// one had been sent before the first left the bottleneck.
fn busy_time(arrivals: &[Arrival], conditions: &Conditions, service: u64) -> (f64, u64) {
    let (delay, _) = delay_moments(&conditions.delay);
    let (mut busy, mut packets) = (0.0, 0);
    for pair in arrivals.windows(2) {
        let left = pair[0].received_ns as f64 - delay;
        // A sender's packet needs a moment to get to the link.
        if (pair[1].sent_ns as f64) + DELAY_SLACK_NS.min(service as f64 / 2.0) < left {
            busy += pair[1].received_ns as f64 - pair[0].received_ns as f64;
            packets += 1;
        }
    }
    (busy, packets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Outcome;

    /// Arrivals of probes sent every 100 ms: the number of each, and its time in flight in ms.
    fn arrivals(of: &[(u64, u64)]) -> Vec<Arrival> {
        let arrival = |&(number, flight_ms): &(u64, u64)| {
            let sent_ns = number * 100 * MS;
            Arrival { number, sent_ns, received_ns: sent_ns + flight_ms * MS }
        };
        of.iter().map(arrival).collect()
    }

    #[test]
    fn the_kernels_copies_for_lost_packets_are_no_missed_loss() {
        let both = Conditions { loss: Loss::Random(0.3), duplicate: 0.2, ..Conditions::default() };
        let found = copies_for_losses(&both, BackEnd::KernelNetem).unwrap();
        let properties: Vec<Property> = found.iter().map(|check| check.property).collect();
        assert_eq!(properties, [Property::Loss, Property::Duplicates]);
        assert!(found.iter().all(|check| matches!(check.outcome, Outcome::Unverified(_))), "{found:?}");
        assert_eq!(copies_for_losses(&both, BackEnd::UserSpace), None);
        for one in [Conditions { loss: Loss::None, ..both }, Conditions { duplicate: 0.0, ..both }] {
            assert_eq!(copies_for_losses(&one, BackEnd::KernelNetem), None);
        }
    }

    #[test]
    fn a_probe_of_the_rate_is_one_packet() {
        assert_eq!([0, 40_000, 1 << 30].map(|bytes| rate_probe_bytes(bytes, 1_500)), [SMALLEST as u64, 1_000, 1_400]);
        assert_eq!([0, 40_000, 1 << 30].map(|bytes| rate_probe_bytes(bytes, 1_280)), [SMALLEST as u64, 1_000, 1_280]);
    }

    #[test]
    fn a_copy_that_waited_for_its_original_is_no_sample_of_the_delay() {
        // 4 ms a packet; the second was duplicated.
        let arrivals = arrivals(&[(0, 4), (1, 4), (1, 8), (2, 4), (3, 4), (4, 4)]);
        let rate = Some(Rate { bits_per_second: 96_000, queue_bytes: 64_000 });
        let mut conditions = Conditions { duplicate: 0.1, rate, ..Conditions::default() };
        assert_eq!(delay_samples(&arrivals, &conditions), [4e6; 4]);
        // In the order of packets, a copy is never before its original.
        conditions.rate = None;
        conditions.delay.jitter_ns = MS;
        assert_eq!(delay_samples(&arrivals, &conditions).len(), 4);
        // It takes a time of its own where neither holds.
        conditions.delay.jitter_reorders = true;
        assert_eq!(delay_samples(&arrivals, &conditions).len(), 6);
    }

    #[test]
    fn a_copy_that_came_before_its_original_is_no_sample_of_the_delay() {
        // The copy of the second was faster by its jitter, or was sent ahead.
        let arrivals = arrivals(&[(0, 14), (1, 5), (1, 18), (2, 14), (3, 14), (4, 14)]);
        let rate = Some(Rate { bits_per_second: 96_000, queue_bytes: 64_000 });
        let mut conditions = Conditions { duplicate: 0.1, rate, ..Conditions::default() };
        (conditions.delay.jitter_ns, conditions.delay.jitter_reorders) = (9 * MS, true);
        assert_eq!(delay_samples(&arrivals, &conditions), [14e6; 4]);
        let mut conditions = Conditions { duplicate: 0.1, reorder: 0.1, ..Conditions::default() };
        conditions.delay.jitter_ns = 9 * MS;
        assert_eq!(delay_samples(&arrivals, &conditions), [14e6; 4]);
    }

    #[test]
    fn where_nearly_all_probes_come_twice_the_first_arrivals_are_the_samples() {
        let arrivals = arrivals(&[(0, 4), (0, 8), (1, 4), (1, 8), (2, 4), (3, 4), (3, 8)]);
        let rate = Some(Rate { bits_per_second: 96_000, queue_bytes: 64_000 });
        let conditions = Conditions { duplicate: 0.9, rate, ..Conditions::default() };
        assert_eq!(delay_samples(&arrivals, &conditions), [4e6; 4]);
    }

    #[test]
    fn what_no_probe_measures_is_named() {
        assert!(
            unmeasured(&Conditions { loss: Loss::Random(0.5), duplicate: 0.1, ..Conditions::default() }).is_empty()
        );
        let loss = Loss::GilbertElliott { to_bad: 0.02, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
        let mut conditions = Conditions { loss, reorder: 0.05, ..Conditions::default() };
        conditions.delay.jitter_ns = MS;
        let found = unmeasured(&conditions);
        let words: Vec<[String; 3]> = found.iter().map(Check::words).collect();
        let expected =
            [["jitter", "1.000 ms", "—"], ["reordering", "5.000 %", "—"], ["length of bursts", "4.0 packets", "—"]];
        assert_eq!(words, expected.map(|row| row.map(str::to_owned)));
        assert!(found.iter().all(|check| matches!(check.outcome, Outcome::Unverified(_))));
    }

    #[test]
    fn only_busy_times_count_for_the_rate() {
        let arrival = |number, sent_ns, received_ns| Arrival { number, sent_ns, received_ns };
        // 1 ms a packet; the third is sent when the link has been idle for 5 ms.
        let arrivals = [
            arrival(0, 0, MS),
            arrival(1, 0, 2 * MS),
            arrival(2, 7 * MS, 8 * MS),
            arrival(3, 7 * MS, 9 * MS),
            arrival(4, 7 * MS, 10 * MS),
        ];
        assert_eq!(busy_time(&arrivals, &Conditions::default(), MS), (3.0 * MS as f64, 3));
    }

    #[test]
    fn probes_that_would_take_too_long_are_not_sent() {
        let mut conditions = Conditions::default();
        conditions.delay.mean_ns = 2 * SECOND;
        assert_eq!(too_slow(patience_ns(&conditions, 48, 1)), None);
        conditions.delay.jitter_ns = SECOND;
        assert_eq!(too_slow(patience_ns(&conditions, 48, 1)), None, "3 s at most");
        conditions.delay.distribution = Distribution::Normal;
        assert_eq!(too_slow(patience_ns(&conditions, 48, 1)).as_deref(), Some("a probe may take 8 s"));
        // A packet takes 384 s.
        let rate = Some(Rate { bits_per_second: 1, queue_bytes: 1_000 });
        let conditions = Conditions { rate, ..Conditions::default() };
        assert_eq!(too_slow(patience_ns(&conditions, 48, 1)).as_deref(), Some("a probe may take 768 s"));
        let why = unverified_shares(&Conditions { duplicate: 0.1, ..conditions }, "a reason");
        assert_eq!(why.iter().map(|check| check.property).collect::<Vec<_>>(), [Property::Loss, Property::Duplicates]);
        assert_eq!(unverified_shares(&conditions, "a reason").len(), 1);
    }

    #[test]
    fn a_packet_waits_for_its_rate() {
        let conditions =
            Conditions { rate: Some(Rate { bits_per_second: 2_000, queue_bytes: 1_000 }), ..Conditions::default() };
        assert_eq!(service_ns(&conditions, 48), 192 * MS);
        assert_eq!(service_ns(&Conditions::default(), 48), 0);
    }
}
