//! Bytes of requests.

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

fn golden() -> [Golden; 4] {
    let bursts = Loss::GilbertElliott { to_bad: 0.01, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
    let rated = |bits_per_second, queue_bytes| Some(Rate { bits_per_second, queue_bytes });
    [
        // delay 5ms 1ms loss random 1% duplicate 2% reorder 5% gap 1 limit 1000000
        Golden {
            conditions: Conditions { loss: Loss::Random(0.01), duplicate: 0.02, reorder: 0.05, ..delayed(1_000_000) },
            options:
                b"\x2d\x31\x01\x00\x40\x42\x0f\x00\x29\x5c\x8f\x02\x01\x00\x00\x00\x52\xb8\x1e\x05\x09\x3d\x00\x00",
            attributes: &[(REORDER, b"\xcd\xcc\xcc\x0c\x00\x00\x00\x00")],
        },
        // delay 5ms 1ms loss gemodel 1% 25% 100% 0% rate 100kbit -14 limit 45: 42 packets of 1,500 B, one in service, 9 ms of
        // 100 kbit/s: 112 B, two packets.
        Golden {
            conditions: Conditions { loss: bursts, rate: rated(100_000, 64_000), ..delayed(1_000_000) },
            options:
                b"\x2d\x31\x01\x00\x2d\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09\x3d\x00\x00",
            attributes: &[
                (LOSS, b"\x14\x00\x02\x00\x29\x5c\x8f\x02\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00\x00"),
                (RATE, b"\xd4\x30\x00\x00\xf2\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"),
            ],
        },
        // rate 50gbit -14 limit 3: too fast for the 32 bits of the first attribute.
        Golden {
            conditions: Conditions { rate: rated(50_000_000_000, 3_000), ..Conditions::default() },
            options:
                b"\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
            attributes: &[
                (RATE_64, b"\x80\x6e\x87\x74\x01\x00\x00\x00"),
                (RATE, b"\xff\xff\xff\xff\xf2\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"),
            ],
        },
        // loss 100% limit 1000000: no duplicate, of which one copy would arrive.
        Golden {
            conditions: Conditions { down: true, duplicate: 0.02, ..Conditions::default() },
            options:
                b"\x00\x00\x00\x00\x40\x42\x0f\x00\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
            attributes: &[],
        },
    ]
}

/// The golden bytes are those of a little-endian machine.
fn skip() -> bool {
    let skip = cfg!(target_endian = "big");
    if skip {
        pubmark_testing::skip("numbers of requests are in the machine's order, and this one's is another");
    }
    skip
}

#[test]
fn requests_say_what_tc_says() {
    if skip() {
        return;
    }
    for Golden { conditions, options, attributes } in golden() {
        let bytes = request(1, &conditions).finish(1);
        // Header, tcmsg, then the kind in 12 bytes.
        assert_eq!(&bytes[16..36], b"\0\0\0\0\x01\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0");
        assert_eq!(&bytes[36..48], b"\x0a\0\x01\0netem\0\0\0");
        let body = &bytes[52..];
        assert_eq!(&body[..24], options, "{conditions:?}");
        for (kind, value) in attributes {
            assert_eq!(crate::netlink::find(&body[24..], *kind), Some(*value), "attribute {kind}");
        }
    }
}

#[test]
fn a_whole_request_has_these_bytes() {
    if skip() {
        return;
    }
    let delay = Delay { mean_ns: 20_000_000, ..Delay::default() };
    let loss = Loss::GilbertElliott { to_bad: 0.01, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
    let conditions = Conditions { delay, loss, ..Conditions::default() };
    let expected: &[&[u8]] = &[
        // nlmsghdr: 184 bytes, RTM_NEWQDISC; REQUEST, ACK, REPLACE, CREATE; sequence 7, no port.
        b"\xb8\0\0\0\x24\0\x05\x05\x07\0\0\0\0\0\0\0",
        // tcmsg: AF_UNSPEC, interface 3, no handle, parent TC_H_ROOT, no info.
        b"\0\0\0\0\x03\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0",
        // TCA_KIND.
        b"\x0a\0\x01\0netem\0\0\0",
        // TCA_OPTIONS, 136 bytes, tc_netem_qopt: 312,500 ticks of 64 ns, 1,000,000 packets, no loss, gap, duplicates, jitter.
        b"\x88\0\x02\0\xb4\xc4\x04\0\x40\x42\x0f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        // TCA_NETEM_CORR, TCA_NETEM_REORDER, TCA_NETEM_CORRUPT: nothing.
        b"\x10\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x0c\0\x03\0\0\0\0\0\0\0\0\0\x0c\0\x04\0\0\0\0\0\0\0\0\0",
        // TCA_NETEM_RATE: none.
        b"\x14\0\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        // TCA_NETEM_LATENCY64: 20,000,000 ns; TCA_NETEM_JITTER64: 0.
        b"\x0c\0\x0a\0\x00\x2d\x31\x01\0\0\0\0\x0c\0\x0b\0\0\0\0\0\0\0\0\0",
        // TCA_NETEM_LOSS, nested: NETEM_LOSS_GE with p = 1 %, r = 25 %, h = 0, 1 - k = 0.
        b"\x18\0\x05\x80\x14\0\x02\0\x29\x5c\x8f\x02\x00\x00\x00\x40\0\0\0\0\0\0\0\0",
    ];
    assert_eq!(request(3, &conditions).acknowledged().finish(7), expected.concat());
}

/// The table of delays in a request with this jitter, in units of the jitter; `None` if it has none.
fn table_of(distribution: Distribution, jitter_ns: u64) -> Option<Vec<f64>> {
    let delay = Delay { mean_ns: 5_000_000, jitter_ns, distribution, jitter_reorders: true };
    let bytes = request(1, &Conditions { delay, ..Conditions::default() }).finish(1);
    let table = crate::netlink::find(&bytes[52 + 24..], DELAY_DISTRIBUTION)?;
    let entry = |pair: &[u8]| f64::from(i16::from_ne_bytes(pair.try_into().unwrap())) / TABLE_SCALE;
    Some(table.chunks(2).map(entry).collect())
}

#[test]
fn every_jitter_brings_its_table_as_the_kernel_keeps_the_one_of_before() {
    let [uniform, normal] = [Distribution::Uniform, Distribution::Normal].map(|one| table_of(one, 1_000_000).unwrap());
    assert_eq!([uniform.len(), normal.len()], [TABLE_ENTRIES; 2]);
    assert_ne!(uniform, normal);
    let step = 2.0 / TABLE_ENTRIES as f64;
    assert!((uniform[0] + 1.0).abs() < step && (uniform[TABLE_ENTRIES - 1] - 1.0).abs() < step);
    assert!(uniform.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() < 1e-9), "equal steps");
    assert_eq!(table_of(Distribution::Uniform, 0), None, "no jitter, no table");
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
    let table = table_of(Distribution::Normal, 1_000_000).unwrap();
    assert_eq!(table.len(), TABLE_ENTRIES);
    assert!(table.windows(2).all(|pair| pair[0] <= pair[1]));
    let mean_square = table.iter().map(|entry| entry * entry).sum::<f64>() / TABLE_ENTRIES as f64;
    assert!((libm::sqrt(mean_square) - 1.0).abs() < 0.001);
    // 84.13 % lie below one standard deviation.
    assert!((table[3_446] - 1.0).abs() < 0.01);
}

#[test]
fn differences_of_the_kernels_emulation_are_named() {
    assert!(differences(&delayed(0), false).is_empty());
    assert_eq!(differences(&Conditions { rate: Some(SLOW), ..delayed(1) }, false).len(), 2);
    let odd = Rate { bits_per_second: SLOW.bits_per_second + 1, ..SLOW };
    assert!(
        differences(&Conditions { rate: Some(odd), ..delayed(1) }, false).iter().any(|one| one.contains("rounded up"))
    );
    assert_eq!(differences(&Conditions { down: true, ..delayed(0) }, false).len(), 1);
    assert_eq!(differences(&delayed(0), true), differences(&Conditions { down: true, ..delayed(0) }, false));
    let lossy = Conditions { loss: Loss::Random(0.1), ..delayed(0) };
    let twice = Conditions { duplicate: 0.1, ..lossy };
    assert!(
        differences(&lossy, false).is_empty()
            && differences(&Conditions { loss: Loss::None, ..twice }, false).is_empty()
    );
    assert_eq!(differences(&twice, false), ["a packet that is drawn both lost and duplicated arrives once"]);
    assert_eq!(differences(&Conditions { down: true, ..twice }, false).len(), 1);
    let bursts = Loss::GilbertElliott { to_bad: 0.01, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
    let bursts = Conditions { loss: bursts, ..delayed(0) };
    assert_eq!(
        differences(&bursts, false),
        ["the states of bursty losses begin with the good one, and again after each change of the link"]
    );
    assert_eq!(differences(&Conditions { down: true, ..bursts }, false).len(), 1);
}

const SLOW: Rate = Rate { bits_per_second: 1_000, queue_bytes: 1_500 };

#[test]
fn conditions_that_the_kernel_cannot_emulate_are_refused_with_an_alternative() {
    let reordering = |jitter_ns| Conditions {
        delay: Delay { jitter_reorders: true, ..delayed(jitter_ns).delay },
        ..Conditions::default()
    };
    let normal = Conditions {
        delay: Delay { distribution: Distribution::Normal, ..reordering(WIDEST_JITTER_NS + 1).delay },
        ..Conditions::default()
    };
    let rate = Some(SLOW);
    for possible in [
        Conditions::default(),
        delayed(0),
        reordering(1),
        Conditions { rate, ..delayed(1) },
        Conditions { reorder: 0.1, ..delayed(0) },
        reordering(WIDEST_JITTER_NS),
    ] {
        assert_eq!(impossible(&possible), None, "{possible:?}");
    }
    for (conditions, words) in [
        (delayed(1), "jitter_reorders: true"),
        (Conditions { rate, ..reordering(1) }, "keeps the order"),
        (Conditions { rate, reorder: 0.1, ..delayed(0) }, "sends ahead"),
        (reordering(WIDEST_JITTER_NS + 1), "2.147 s"),
        (normal, "2.147 s"),
    ] {
        let why = impossible(&conditions).unwrap();
        assert!(why.contains(words), "{conditions:?}: {why}");
    }
}
