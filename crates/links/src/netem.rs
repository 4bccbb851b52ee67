//! The kernel's own emulation, `netem`, as a request: what `tc qdisc replace dev … root netem …` would send.
//!
//! Only the encoding is here so far; networks are carried by [`crate::star`]. The kernel's emulation differs where
//! [`differences`] says so.

use pubmark_model::link::{Conditions, Delay, Distribution, Loss};

use crate::netlink::Message;

/// Attributes of linux/pkt_sched.h (`TCA_NETEM_…`, `NETEM_LOSS_…`).
const CORRELATIONS: u16 = 1;
const DELAY_DISTRIBUTION: u16 = 2;
const REORDER: u16 = 3;
const CORRUPT: u16 = 4;
const LOSS: u16 = 5;
const RATE: u16 = 6;
const LATENCY_NS: u16 = 10;
const JITTER_NS: u16 = 11;
const GILBERT_ELLIOTT: u16 = 2;

/// Parent of an interface's own queue (TC_H_ROOT).
const ROOT_QUEUE: u32 = u32::MAX;

/// The kernel's tick of old attributes: 64 ns (net/pkt_sched.h, PSCHED_SHIFT).
const TICK_NS: u64 = 64;

/// Entries of a table of delays, and what stands for one standard deviation (NETEM_DIST_SCALE).
const TABLE_ENTRIES: usize = 4_096;
const TABLE_SCALE: f64 = 8_192.0;

/// Packets of the largest size that netem may hold: its limit counts packets, ours bytes.
const MTU: u64 = 1_500;
/// Its own default; delay × rate must fit as well.
const LEAST_LIMIT: u64 = 1_000;

/// A request that puts `conditions` on the outgoing side of interface `index`, in place of what was there. Every
/// attribute is sent each time: the kernel keeps what a change leaves out.
pub fn request(index: u32, conditions: &Conditions) -> Message {
    // tcmsg: family, index, handle, parent, info.
    let mut part = [0; 20];
    part[4..8].copy_from_slice(&index.to_ne_bytes());
    part[12..16].copy_from_slice(&ROOT_QUEUE.to_ne_bytes());
    let message = Message::new(libc::RTM_NEWQDISC, libc::NLM_F_REPLACE | libc::NLM_F_CREATE, &part);
    let message = message.attribute(libc::TCA_KIND, b"netem\0");
    message.nested(libc::TCA_OPTIONS, false, &options(conditions), |inside| attributes(inside, conditions))
}

/// In what the kernel's emulation would not do what `conditions` ask; empty if it would.
pub fn differences(conditions: &Conditions) -> Vec<&'static str> {
    let Conditions { delay, rate, .. } = conditions;
    let jitter = delay.jitter_ns > 0;
    [
        (jitter && !delay.jitter_reorders && rate.is_none(), "jitter reorders packets, there being no rate"),
        (jitter && delay.jitter_reorders && rate.is_some(), "jitter does not reorder packets, there being a rate"),
        (rate.is_some(), "the queue is bounded in packets, not bytes, and keeps its times when the rate changes"),
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
    let loss = match conditions {
        Conditions { down: true, .. } => 1.0,
        Conditions { loss: Loss::Random(chance), .. } => *chance,
        _ => 0.0,
    };
    let Delay { mean_ns, jitter_ns, .. } = conditions.delay;
    // A gap of 1 lets each packet be sent ahead; 0 switches that off.
    let gap = u32::from(conditions.reorder > 0.0);
    [ticks(mean_ns), limit(conditions), chance(loss), gap, chance(conditions.duplicate), ticks(jitter_ns)]
        .map(u32::to_ne_bytes)
        .concat()
}

/// Packets that fit: those in the queue of the rate and those under way at that rate.
fn limit(conditions: &Conditions) -> u32 {
    let Some(rate) = conditions.rate else { return 1_000_000 };
    let under_way = u128::from(rate.bits_per_second) * u128::from(conditions.delay.mean_ns) / 8_000_000_000;
    let bytes = u64::try_from(under_way).unwrap_or(u64::MAX).saturating_add(rate.queue_bytes);
    u32::try_from((bytes / MTU).max(LEAST_LIMIT)).unwrap_or(u32::MAX)
}

fn attributes(message: Message, conditions: &Conditions) -> Message {
    let Delay { mean_ns, jitter_ns, distribution, .. } = conditions.delay;
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX).to_ne_bytes();
    let pair = |first: u32| [first, 0].map(u32::to_ne_bytes).concat();
    // tc_netem_rate: bytes a second (the larger ones in RATE64, which none of ours need), overheads and cells: none.
    let bytes_per_second = conditions.rate.map_or(0, |rate| rate.bits_per_second.div_ceil(8));
    let rate = [u32::try_from(bytes_per_second).unwrap_or(u32::MAX), 0, 0, 0].map(u32::to_ne_bytes).concat();
    let mut message = message
        .attribute(CORRELATIONS, &[0; 12])
        .attribute(REORDER, &pair(chance(conditions.reorder)))
        .attribute(CORRUPT, &pair(0))
        .attribute(RATE, &rate)
        .attribute(LATENCY_NS, &signed(mean_ns))
        .attribute(JITTER_NS, &signed(jitter_ns));
    if let (Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad }, false) = (conditions.loss, conditions.down) {
        // tc_netem_gemodel: p, r, h (the share that survives the bad state), 1 − k (the share that the good one loses).
        let model = [to_bad, to_good, 1.0 - loss_bad, loss_good].map(|share| chance(share).to_ne_bytes()).concat();
        message = message.nested(LOSS, true, &[], |inside| inside.attribute(GILBERT_ELLIOTT, &model));
    }
    if distribution == Distribution::Normal && jitter_ns > 0 {
        message = message.attribute(DELAY_DISTRIBUTION, &normal_table());
    }
    message
}

/// Quantiles of the standard normal distribution at the middles of equal shares, as the kernel draws from them.
fn normal_table() -> Vec<u8> {
    let entry = |index: usize| {
        let share = (index as f64 + 0.5) / TABLE_ENTRIES as f64;
        ((normal_quantile(share) * TABLE_SCALE).round() as i16).to_ne_bytes()
    };
    (0..TABLE_ENTRIES).flat_map(entry).collect()
}

/// By halving: the distribution function is monotonic, and exact in `libm`.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if 0.5 * libm::erfc(-middle / std::f64::consts::SQRT_2) < share { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use pubmark_model::link::Rate;

    use super::*;

    /// The value of TCA_OPTIONS in messages of `tc` (iproute2 6.1.0), by `strace -xx -e trace=sendmsg tc qdisc replace
    /// dev lo root netem …`: the fixed part, then (kind, value) of each attribute.
    struct Golden {
        conditions: Conditions,
        options: &'static [u8],
        attributes: &'static [(u16, &'static [u8])],
    }

    fn delayed(jitter_ns: u64) -> Conditions {
        let delay = Delay { mean_ns: 5_000_000, jitter_ns, ..Delay::default() };
        Conditions { delay, ..Conditions::default() }
    }

    fn golden() -> [Golden; 3] {
        let bursts = Loss::GilbertElliott { to_bad: 0.01, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
        [
            // delay 5ms 1ms loss random 1% duplicate 2% reorder 5% gap 1
            Golden {
                conditions: Conditions {
                    loss: Loss::Random(0.01),
                    duplicate: 0.02,
                    reorder: 0.05,
                    ..delayed(1_000_000)
                },
                options:
                    b"\x2d\x31\x01\x00\xe8\x03\x00\x00\x29\x5c\x8f\x02\x01\x00\x00\x00\x52\xb8\x1e\x05\x09\x3d\x00\x00",
                attributes: &[(REORDER, b"\xcd\xcc\xcc\x0c\x00\x00\x00\x00")],
            },
            // delay 5ms 1ms loss gemodel 1% 25% 100% 0% rate 100kbit
            Golden {
                conditions: Conditions {
                    loss: bursts,
                    rate: Some(Rate { bits_per_second: 100_000, queue_bytes: 0 }),
                    ..delayed(1_000_000)
                },
                options:
                    b"\x2d\x31\x01\x00\xe8\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09\x3d\x00\x00",
                attributes: &[
                    (LOSS, b"\x14\x00\x02\x00\x29\x5c\x8f\x02\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00\x00"),
                    (RATE, b"\xd4\x30\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
                ],
            },
            // loss 100%
            Golden {
                conditions: Conditions { down: true, ..Conditions::default() },
                options:
                    b"\x00\x00\x00\x00\xe8\x03\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
                attributes: &[],
            },
        ]
    }

    #[test]
    fn requests_say_what_tc_says() {
        if cfg!(target_endian = "big") {
            return println!("skipped: the golden bytes are those of a little-endian machine");
        }
        for Golden { conditions, options, attributes } in golden() {
            let bytes = request(1, &conditions).finish(1);
            // Header, tcmsg, then the kind in 12 bytes.
            assert_eq!(&bytes[16..36], b"\0\0\0\0\x01\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0");
            assert_eq!(&bytes[36..48], b"\x0a\0\x01\0netem\0\0\0");
            let body = &bytes[52..];
            assert_eq!(&body[..4], &options[..4], "latency");
            assert_eq!(&body[8..24], &options[8..24], "loss, gap, duplicate, jitter");
            for (kind, value) in attributes {
                assert_eq!(crate::netlink::find(&body[24..], *kind), Some(*value), "attribute {kind}");
            }
        }
    }

    #[test]
    fn a_change_names_everything_so_that_nothing_of_before_stays() {
        let bytes = request(1, &Conditions::default()).finish(1);
        for kind in [CORRELATIONS, REORDER, CORRUPT, RATE, LATENCY_NS, JITTER_NS] {
            let value = crate::netlink::find(&bytes[52 + 24..], kind).unwrap();
            assert!(value.iter().all(|byte| *byte == 0), "attribute {kind}: {value:?}");
        }
    }

    #[test]
    fn the_normal_table_has_the_quantiles_of_the_normal_distribution() {
        let table: Vec<i16> =
            normal_table().chunks(2).map(|pair| i16::from_ne_bytes(pair.try_into().unwrap())).collect();
        assert_eq!(table.len(), TABLE_ENTRIES);
        assert!(table.windows(2).all(|pair| pair[0] <= pair[1]));
        let mean_square = table.iter().map(|entry| f64::from(*entry) * f64::from(*entry)).sum::<f64>() / 4_096.0;
        assert!((libm::sqrt(mean_square) / TABLE_SCALE - 1.0).abs() < 0.001);
        // 84.13 % lie below one standard deviation.
        assert!((f64::from(table[3_446]) / TABLE_SCALE - 1.0).abs() < 0.01);
    }

    #[test]
    fn what_the_kernel_does_otherwise_is_named() {
        assert!(differences(&delayed(0)).is_empty());
        assert_eq!(differences(&delayed(1)).len(), 1);
        let rate = Some(Rate { bits_per_second: 1_000, queue_bytes: 10 });
        assert_eq!(differences(&Conditions { rate, ..delayed(1) }).len(), 1);
    }
}
