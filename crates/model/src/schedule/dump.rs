//! A schedule as text, for reading or comparison.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use crate::fleet::{Device, Fleet};
use crate::random::RandomTime;
use crate::schedule::hash::in_identity_order;
use crate::schedule::{Cursor, Rules, Timeline};
use crate::workload::Workload;

/// Writes every message of a schedule, one in each line: due time in ns since the start of the measured window, device as
/// `copy/group/index`, payload bytes, `online` or `offline` as planned. Ordered by due time, then copy, group name, index.
/// Memory use is one cursor for each device; messages are not stored. A group that floods has no due times and is named in
/// a comment.
pub fn dump(workload: &Workload, fleet: &Fleet, seed: u64, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let rules = Rules::all(workload, seed, timeline);
    let rules_of = |device: &Device| &rules[usize::from(device.group)];
    writeln!(out, "# due_ns device payload_bytes planned")?;
    for (group, rules) in workload.devices.iter().zip(&rules) {
        if rules.is_flood() {
            writeln!(out, "# {} floods: no due times", group.name)?;
        }
        if let Some(reaction) = group.reaction() {
            let (burst, think) = (reaction.burst, reaction.think);
            let think = match think {
                RandomTime::Fixed(time) => format!("{} ns", time.as_nanos()),
                RandomTime::Exponential(mean) => format!("{} ns on average (exponential)", mean.as_nanos()),
            };
            let pace = match burst.messages {
                0 | 1 => "1 message".to_owned(),
                several => format!("{several} messages, one every {} ns", burst.interval.as_nanos()),
            };
            writeln!(
                out,
                "# {} reacts to {}: {pace}, the first after {think}; no due times",
                group.name, reaction.to.0
            )?;
        }
    }
    for group in &workload.devices {
        let Some(slowdown) = &group.slowdown else { continue };
        let (on, length_ns) = (&slowdown.on.0, slowdown.length.as_nanos());
        let pace =
            slowdown.interval.map_or("none".to_owned(), |interval| format!("one every {} ns", interval.as_nanos()));
        writeln!(
            out,
            "# {} sends at most {pace} for {length_ns} ns after it received {on}; due times without that",
            group.name
        )?;
    }
    let devices: Vec<Device> =
        in_identity_order(workload, fleet).into_iter().filter(|device| !rules_of(device).is_flood()).collect();
    let mut cursors: Vec<Cursor> = devices.iter().map(|device| Cursor::new(rules_of(device), device)).collect();
    let mut next: BinaryHeap<Reverse<(i64, usize)>> = cursors
        .iter()
        .enumerate()
        .filter_map(|(rank, cursor)| cursor.peek_ns().map(|due_ns| Reverse((due_ns, rank))))
        .collect();
    while let Some(Reverse((_, rank))) = next.pop() {
        let device = &devices[rank];
        let Some(due) = cursors[rank].take(rules_of(device)) else { continue };
        let name = &workload.devices[usize::from(device.group)].name;
        let planned = if due.planned_online { "online" } else { "offline" };
        writeln!(out, "{} {}/{name}/{} {} {planned}", due.due_ns, device.copy, device.index, due.payload_bytes)?;
        if let Some(due_ns) = cursors[rank].peek_ns() {
            next.push(Reverse((due_ns, rank)));
        }
    }
    out.flush()
}
