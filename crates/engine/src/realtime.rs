//! SCHED_FIFO for the calling thread.

use crate::plan::REALTIME_PRIORITY;

/// Puts the calling thread under SCHED_FIFO. Fails without the right to (CAP_SYS_NICE or an rtprio limit).
pub fn claim() -> std::io::Result<()> {
    claim_at(REALTIME_PRIORITY)
}

/// The same before all threads that measure: for one that takes microseconds a second to say that its process is there.
pub fn claim_ahead() -> std::io::Result<()> {
    claim_at(REALTIME_PRIORITY + 1)
}

fn claim_at(priority: i32) -> std::io::Result<()> {
    // SAFETY: numbers alone, of which zero is one; musl has more of them than glibc.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: `parameters` is a valid sched_param; 0 names the calling thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}
