//! Usage of this machine, with the names of an exporter.

use std::collections::BTreeMap;
use std::net::IpAddr;

use procfs::{Current as _, CurrentSI as _, KernelStats, Meminfo};

use super::snapshot::LOOPBACK;
use super::{ScrapeError, Snapshot};
use crate::awake;

impl Snapshot {
    /// Usage of this machine until now.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn own() -> Result<Snapshot, ScrapeError> {
        snapshot()
    }
}

/// Name of the network interface of this machine that has an address; `None` if none has it.
pub fn interface_with(address: IpAddr) -> Option<String> {
    let interfaces = if_addrs::get_if_addrs().ok()?;
    interfaces.into_iter().find(|interface| interface.ip() == address).map(|interface| interface.name)
}

/// Reads the usage now. The loops of `--awake` count as idle: they use only time that would be idle.
pub(super) fn snapshot() -> Result<Snapshot, ScrapeError> {
    let stats = KernelStats::current()?;
    let memory = Meminfo::current()?;
    let devices = procfs::net::dev_status()?;
    let seconds = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64;
    let total = &stats.total;
    let loops = awake::machine_cpu_ns() / (1_000_000_000 / procfs::ticks_per_second());
    let modes = [
        ("user", Some(total.user.saturating_sub(loops))),
        ("nice", Some(total.nice)),
        ("system", Some(total.system)),
        ("idle", Some(total.idle + loops)),
        ("iowait", total.iowait),
        ("irq", total.irq),
        ("softirq", total.softirq),
        ("steal", total.steal),
    ];
    let bytes = |of: fn(&procfs::net::DeviceStatus) -> u64| -> BTreeMap<String, u64> {
        let others = devices.values().filter(|device| device.name != LOOPBACK);
        others.map(|device| (device.name.clone(), of(device))).collect()
    };
    Ok(Snapshot {
        cpu_seconds: modes.iter().filter_map(|(mode, ticks)| Some(((*mode).to_owned(), seconds((*ticks)?)))).collect(),
        cores: u32::try_from(stats.cpu_time.len()).ok().filter(|cores| *cores > 0),
        memory_bytes: Some(memory.mem_total),
        available_bytes: memory.mem_available,
        received_bytes: bytes(|device| device.recv_bytes),
        sent_bytes: bytes(|device| device.sent_bytes),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_one_interface() {
        assert_eq!(interface_with([127, 0, 0, 1].into()).as_deref(), Some(LOOPBACK));
        assert_eq!(interface_with([192, 0, 2, 1].into()), None, "a documentation address (RFC 5737)");
    }

    #[test]
    fn this_machine_works_while_something_counts() {
        let before = snapshot().unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_millis(200);
        while std::time::Instant::now() < until {
            std::hint::spin_loop();
        }
        let after = snapshot().unwrap();
        let worked = after.busy_seconds() - before.busy_seconds();
        // The kernel counts in ticks of 10 ms, and a hypervisor may steal time.
        assert!(worked >= 0.02, "{worked}");
        assert!(after.used_bytes() > Some(1 << 20) && after.used_bytes() < after.memory_bytes, "{after:?}");
        assert!(after.cores > Some(0) && !after.received_bytes.contains_key(LOOPBACK), "{after:?}");
    }
}
