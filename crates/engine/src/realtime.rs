//! SCHED_FIFO for the calling thread.

use crate::plan::REALTIME_PRIORITY;

/// Puts the calling thread under SCHED_FIFO. Fails without the right to (CAP_SYS_NICE or an rtprio limit).
pub fn claim() -> std::io::Result<()> {
    // SAFETY: numbers alone, of which zero is one; musl has more of them than glibc.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = REALTIME_PRIORITY;
    // SAFETY: `parameters` is a valid sched_param; 0 names the calling thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}
