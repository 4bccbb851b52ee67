//! Messages whose loss or duplication breaks the promise of a QoS level.

use pubmark_model::qos::Qos;
use pubmark_model::workload::Workload;
use pubmark_record::delivery::BrokenPromises;
use pubmark_record::record::Delivery;

use crate::books::{Judged, Received};
use crate::faults::levels_of_audiences;
use crate::plan::RunPlan;
use crate::shard_outcome::PublisherBook;

/// Counts messages whose level promises another outcome. The level of a stream is the lower one of its device's and its
/// subscriber's. `lost` and `duplicated` are those of the whole run.
pub(crate) fn broken(
    plan: &RunPlan,
    publishers: &[PublisherBook],
    received: &[Received<'_>],
    [lost, duplicated]: [u64; 2],
) -> BrokenPromises {
    let duplicated = if are_all(&plan.workload, Qos::ExactlyOnce) { duplicated } else { 0 };
    let lost = if lost == 0 || are_all(&plan.workload, Qos::AtLeastOnce) {
        lost
    } else {
        lost_on_reliable_streams(plan, publishers, received)
    };
    BrokenPromises { lost, duplicated }
}

/// Do all devices and subscribers ask for this level or a higher one?
fn are_all(workload: &Workload, least: Qos) -> bool {
    let of_devices = workload.devices.iter().map(|group| group.qos);
    of_devices.chain(workload.subscribers.iter().map(|group| group.qos)).all(|qos| qos >= least)
}

fn lost_on_reliable_streams(plan: &RunPlan, publishers: &[PublisherBook], received: &[Received<'_>]) -> u64 {
    let subscribed = levels_of_audiences(&plan.workload, &plan.fleet);
    let sessions = plan.subscribe_at.sessions_per_subscriber().max(1) as u32;
    let judged = Judged::new(publishers, received);
    let lost = judged.streams().map(|stream| {
        let of_subscriber = subscribed.get((stream.row.subscriber / sessions) as usize).copied().unwrap_or(0);
        let of_device = plan.workload.devices[usize::from(stream.book.group)].qos.level();
        if of_subscriber == 0 || of_device == 0 {
            return 0;
        }
        let mut found = Delivery::default();
        stream.judge(stream.measured(), &mut found);
        found.lost + stream.forgotten()
    });
    lost.sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pubmark_testing::assert_count_eq;

    use crate::virtual_time::lost_by_all;

    #[test]
    fn what_a_subscriber_at_qos_0_misses_breaks_no_promise() {
        let broken = |device: u8, subscribers: &[u8]| {
            let groups = subscribers
                .iter()
                .enumerate()
                .map(|(number, qos)| format!("  - {{name: s{number}, filters: ['v/#'], qos: {qos}}}\n"));
            let workload = format!(
                "name: virtual\ndevices:\n  - {{name: device, arrival: periodic, every: 10ms, payload: 100B, topic: 'v/a', \
                 qos: {device}}}\nsubscribers:\n{}",
                groups.collect::<String>()
            );
            let books = lost_by_all(&workload, Duration::from_secs(1), 80);
            (books.delivery.lost, books.broken_promises.lost)
        };
        assert_count_eq!(broken(1, &[0]), (1, 0));
        assert_count_eq!(broken(0, &[1]), (1, 0));
        assert_count_eq!(broken(1, &[1]), (1, 1));
        assert_count_eq!(broken(1, &[0, 1]), (2, 1));
        assert_count_eq!(broken(2, &[1]), (1, 1));
    }
}
