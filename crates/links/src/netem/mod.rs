//! The kernel's own emulation, `netem`, as a request: what `tc qdisc replace dev … root netem …` would send.
//!
//! Names and layouts are those of linux/pkt_sched.h; the kernel's implementation is net/sched/sch_netem.c. It does not support
//! all conditions of links: [`impossible`] names what is refused, [`differences`] what it does in another way.

use pubmark_model::link::{Conditions, Delay, Distribution, Link, Loss};

use crate::error::LinkError;
use crate::netlink::{Message, queue_part};

/// Attributes of linux/pkt_sched.h (`TCA_NETEM_…`, `NETEM_LOSS_…`).
const CORRELATIONS: u16 = 1;
const DELAY_DISTRIBUTION: u16 = 2;
const REORDER: u16 = 3;
const CORRUPT: u16 = 4;
const LOSS: u16 = 5;
const RATE: u16 = 6;
const RATE_64: u16 = 8;
const LATENCY_NS: u16 = 10;
const JITTER_NS: u16 = 11;
const GILBERT_ELLIOTT: u16 = 2;

/// The kernel's tick of old attributes: 64 ns (net/pkt_sched.h, PSCHED_SHIFT).
const TICK_NS: u64 = 64;

/// Entries of a table of delays, and what stands for one standard deviation (NETEM_DIST_SCALE).
const TABLE_ENTRIES: usize = 4_096;
const TABLE_SCALE: f64 = 8_192.0;

/// Bytes of an Ethernet header, which the kernel counts with each packet and links do not.
pub const ETHERNET_HEADER: u64 = 14;

/// netem's limit counts packets, ours bytes: a queue holds as many packets as it would hold of this size,
const LARGEST_PACKET: u64 = 1_500;
/// and as many are in flight as could be of this one.
const SMALLEST_PACKET: u64 = 64;

/// Packets that may be in flight where there is no rate, and so no queue.
const NO_LIMIT: u32 = 1_000_000;

/// Widest jitter of either distribution: the kernel caps it at the largest signed 32-bit number (sch_netem.c, `netem_change`).
const WIDEST_JITTER_NS: u64 = i32::MAX as u64;

/// A request that sets `conditions` on the outgoing side of interface `index`, and replaces earlier ones. Every attribute is
/// sent each time: the kernel does not change attributes that a request leaves out.
pub fn request(index: u32, conditions: &Conditions) -> Message {
    let flags = libc::NLM_F_REPLACE | libc::NLM_F_CREATE;
    let message = Message::new(libc::RTM_NEWQDISC, flags, &queue_part(index));
    let message = message.attribute(libc::TCA_KIND, b"netem\0");
    message.nested(libc::TCA_OPTIONS, false, &options(conditions), |inside| attributes(inside, conditions))
}

/// What of `conditions` the kernel's emulation cannot do, and what would be possible; `None` if it can do all.
pub fn impossible(conditions: &Conditions) -> Option<&'static str> {
    let Conditions { delay, rate, reorder, .. } = conditions;
    let Delay { jitter_ns, jitter_reorders, .. } = *delay;
    let jitter = jitter_ns > 0;
    [
        (
            jitter && !jitter_reorders && rate.is_none(),
            "its jitter lets packets overtake each other where there is no rate: ask for it (`jitter_reorders: true`), or add \
             a rate",
        ),
        (
            jitter && jitter_reorders && rate.is_some(),
            "its jitter keeps the order of packets where there is a rate: leave `jitter_reorders` or the rate out",
        ),
        (
            *reorder > 0.0 && rate.is_some(),
            "packets that it sends ahead (`reorder`) do not wait for the rate: leave one of the two out",
        ),
        (jitter_ns > WIDEST_JITTER_NS, "its jitter is 2.147 s at most: ask for less"),
    ]
    .into_iter()
    .find_map(|(cannot, why)| cannot.then_some(why))
}

/// Refuses links with a step that is not supported; the error states why and what would be possible.
pub fn refuse(links: &[Link]) -> Result<(), LinkError> {
    for link in links {
        let why = link.up.iter().chain(&link.down).find_map(|step| impossible(&step.conditions));
        if let Some(why) = why {
            return Err(LinkError::NotByKernel { link: link.name.clone(), why });
        }
    }
    Ok(())
}

/// How the kernel's emulation differs from `conditions`, on a link that faults cut or not; a run with it reports these differences.
pub fn differences(conditions: &Conditions, is_cut: bool) -> Vec<&'static str> {
    let loses = !matches!(conditions.loss, Loss::None);
    [
        (
            conditions.rate.is_some(),
            "queues are bounded in packets: what fits of 1,500 B, and what can be under way of 64 B",
        ),
        (conditions.rate.is_some(), "a new rate holds for packets that come after it, not for those that wait"),
        (
            conditions.rate.is_some_and(|rate| !rate.bits_per_second.is_multiple_of(8)),
            "rates are whole numbers of bytes a second, rounded up",
        ),
        // `netem_enqueue` counts copies: one more for a duplicate, one less for a loss.
        (
            !conditions.down && loses && conditions.duplicate > 0.0,
            "a packet that is drawn both lost and duplicated arrives once",
        ),
        // `get_loss_clg` sets the state with each request that has a loss model.
        (
            !conditions.down && matches!(conditions.loss, Loss::GilbertElliott { .. }),
            "the states of bursty losses begin with the good one, and again after each change of the link",
        ),
        (conditions.down || is_cut, "what waits when a link goes down still arrives"),
    ]
    .into_iter()
    .filter_map(|(differs, how)| differs.then_some(how))
    .collect()
}

/// A chance as the kernel has it: the whole range of a 32-bit number.
fn chance(chance: f64) -> u32 {
    (chance.clamp(0.0, 1.0) * f64::from(u32::MAX)).round() as u32
}

fn ticks(ns: u64) -> u32 {
    u32::try_from(ns / TICK_NS).unwrap_or(u32::MAX)
}

/// `tc_netem_qopt`: latency, limit, loss, gap, duplicate, jitter.
fn options(conditions: &Conditions) -> Vec<u8> {
    // While the link is down, nothing is duplicated: of a packet that is drawn both lost and duplicated, one copy arrives.
    let (loss, duplicate) = match conditions {
        Conditions { down: true, .. } => (1.0, 0.0),
        Conditions { loss: Loss::Random(chance), duplicate, .. } => (*chance, *duplicate),
        Conditions { duplicate, .. } => (0.0, *duplicate),
    };
    let Delay { mean_ns, jitter_ns, .. } = conditions.delay;
    // A gap of 1 lets each packet be sent ahead; 0 switches that off.
    let gap = u32::from(conditions.reorder > 0.0);
    [ticks(mean_ns), limit(conditions), chance(loss), gap, chance(duplicate), ticks(jitter_ns)]
        .map(u32::to_ne_bytes)
        .concat()
}

/// Packets that fit: those in the queue of the rate, the one in service, and those in flight at that rate.
fn limit(conditions: &Conditions) -> u32 {
    let Some(rate) = conditions.rate else { return NO_LIMIT };
    let under_way_ns = conditions.delay.mean_ns.saturating_add(conditions.delay.jitter_ns.saturating_mul(4));
    let under_way = u128::from(rate.bits_per_second) * u128::from(under_way_ns) / 8_000_000_000;
    let under_way = u64::try_from(under_way).unwrap_or(u64::MAX).div_ceil(SMALLEST_PACKET);
    let packets = (rate.queue_bytes / LARGEST_PACKET).max(1) + 1;
    u32::try_from(packets.saturating_add(under_way)).unwrap_or(u32::MAX)
}

fn attributes(message: Message, conditions: &Conditions) -> Message {
    let Delay { mean_ns, jitter_ns, distribution, .. } = conditions.delay;
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX).to_ne_bytes();
    let pair = |first: u32| [first, 0].map(u32::to_ne_bytes).concat();
    // tc_netem_rate: bytes a second (larger ones in RATE64), overhead of a packet, cells: none. Rates are of IP packets, so the
    // Ethernet header is taken off.
    let bytes_per_second = conditions.rate.map_or(0, |rate| rate.bits_per_second.div_ceil(8));
    let overhead = conditions.rate.map_or(0, |_| (ETHERNET_HEADER as u32).wrapping_neg());
    let rate = [u32::try_from(bytes_per_second).unwrap_or(u32::MAX), overhead, 0, 0].map(u32::to_ne_bytes).concat();
    let mut message = message
        .attribute(CORRELATIONS, &[0; 12])
        .attribute(REORDER, &pair(chance(conditions.reorder)))
        .attribute(CORRUPT, &pair(0))
        .attribute(RATE, &rate)
        .attribute(LATENCY_NS, &signed(mean_ns))
        .attribute(JITTER_NS, &signed(jitter_ns));
    if bytes_per_second >= u64::from(u32::MAX) {
        message = message.attribute(RATE_64, &bytes_per_second.to_ne_bytes());
    }
    if let (Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad }, false) = (conditions.loss, conditions.down) {
        // tc_netem_gemodel: p, r, h (the share that survives the bad state), 1 − k (the share that the good one loses).
        let model = [to_bad, to_good, 1.0 - loss_bad, loss_good].map(|share| chance(share).to_ne_bytes()).concat();
        message = message.nested(LOSS, true, &[], |inside| inside.attribute(GILBERT_ELLIOTT, &model));
    }
    // Without a jitter the kernel uses no table. With one, a table of before would stay, and no attribute removes it: the
    // uniform distribution, which is the kernel's own until the first table, needs one, too.
    if jitter_ns > 0 {
        message = message.attribute(DELAY_DISTRIBUTION, &table(distribution));
    }
    message
}

/// Quantiles at the middles of equal shares, in units of the jitter, as the kernel draws from them.
fn table(distribution: Distribution) -> Vec<u8> {
    let quantile = |share: f64| match distribution {
        Distribution::Uniform => 2.0 * share - 1.0,
        Distribution::Normal => normal_quantile(share),
    };
    let entry = |index: usize| {
        let share = (index as f64 + 0.5) / TABLE_ENTRIES as f64;
        ((quantile(share) * TABLE_SCALE).round() as i16).to_ne_bytes()
    };
    (0..TABLE_ENTRIES).flat_map(entry).collect()
}

/// Of the standard normal distribution. By halving: the distribution function is monotonic, and exact in `libm`.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if 0.5 * libm::erfc(-middle / std::f64::consts::SQRT_2) < share { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests;
