//! Runs that are stopped before the end of their measured window.

use std::time::Duration;

use pubmark_testing::{assert_count, assert_count_eq};

use super::{ONE_TO_ONE, Simulation};
use crate::sections;

/// Messages take 50 ms, so five of them are in transit when the run is stopped.
#[test]
fn the_last_second_of_a_stopped_run_has_the_rate_of_the_others() {
    let simulation = Simulation::new(ONE_TO_ONE, Duration::from_secs(10));
    simulation.broker.borrow_mut().copy_delays = Box::new(|_, _, _| vec![50_000_000]);
    let outcome = simulation.run_stopped_at(2_400_000_000).outcome;
    let rows = sections::series(&outcome.series, Some(0));
    let times: Vec<(f64, f64)> = rows.iter().map(|row| (row.t_s, row.width_s)).collect();
    assert_eq!(times, [(0.0, 1.0), (1.0, 1.0), (2.0, 0.4), (2.4, 1.0)], "the drain has a bin of its own");
    assert_count!((39..=41).contains(&rows[2].offered) && (39..=41).contains(&rows[2].delivered), "{:?}", rows[2]);
    assert_count_eq!((rows[3].offered, rows[3].sent), (0, 0));
    assert_count!((4..=6).contains(&rows[3].delivered), "{:?}", rows[3]);
    let received = outcome.received_on_nodes[0].as_deref();
    assert_eq!(received.map(<[u64]>::len), Some(2), "full seconds: {received:?}");
    let windows = sections::throughput(&outcome).windows_1s.expect("two full seconds");
    assert!(windows.max <= 101.0 && windows.min >= 94.0, "{windows:?}");
}
