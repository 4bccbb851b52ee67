//! Ctrl-C, SIGTERM, SIGHUP: the first requests an orderly end, the second ends the process at once.
//!
//! The kernel may send several signals for one reason: a process that requested a signal for its parent's death
//! (`PR_SET_PDEATHSIG`) gets one for each thread of the parent that ends before the last one. Signals within a short
//! time count as one: how short depends on the signal.

use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::exit_code::ExitCode;
use crate::failure::Failure;

/// Signals that request the end of the process.
const WATCHED: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// Signals within this time of the first are the same request: no person repeats a request that fast.
const TOGETHER: Duration = Duration::from_millis(150);
/// The same for SIGTERM after SIGTERM, the signal of a parent's death: on a busy machine, seconds pass between the ends of
/// its threads.
const OF_A_PARENT: Duration = Duration::from_secs(5);

/// Starts to watch. The first signal sets the flag. The second ends the process at once; a system that was started ends
/// with it, because the kernel kills the children of the process that started them.
pub fn watch() -> Result<Arc<AtomicBool>, Failure> {
    let watch = watch_preparation()?;
    watch.end_preparation();
    Ok(watch.stop)
}

/// Signals that are watched while a run is prepared. Nothing is started yet that would need an orderly end, and no
/// record has begun. Therefore the first signal ends the process at once.
pub struct Preparation {
    stop: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
}

impl Preparation {
    /// The flag that the first signal sets.
    pub fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// From now on the first signal requests an orderly end.
    pub fn end_preparation(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Blocks signals for the calling thread until this is dropped; the thread gets them then.
struct BlockedSignals {
    before: libc::sigset_t,
}

impl BlockedSignals {
    fn new(signals: &[libc::c_int]) -> BlockedSignals {
        // SAFETY: a signal set is plain integers, for which zero is valid; all pointers are to live values.
        unsafe {
            let (mut held, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&raw mut held);
            for signal in signals {
                libc::sigaddset(&raw mut held, *signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut before);
            BlockedSignals { before }
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled by an earlier call of the same function.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// Starts to watch signals before a run is prepared.
///
/// The handler only writes a byte to a socket, and a separate thread does the rest.
pub fn watch_preparation() -> Result<Preparation, Failure> {
    let failed =
        |error: std::io::Error| Failure::from_error(ExitCode::Internal, &error).during("failed to watch for signals");
    let (mut arrived, handler) = UnixStream::pair().map_err(failed)?;
    // The library installs its handler a moment before it has an action for it: a signal between the two would be lost.
    let held = BlockedSignals::new(&WATCHED);
    for signal in WATCHED {
        if signal == libc::SIGHUP && is_ignored(signal) {
            continue;
        }
        let handler = handler.try_clone().map_err(failed)?;
        let write = move || {
            let byte = signal as u8;
            // SAFETY: write(2) is async-signal-safe, and the action owns the socket. If the socket is full, enough signals
            // wait to be read.
            unsafe { libc::write(handler.as_raw_fd(), (&raw const byte).cast(), 1) };
        };
        // SAFETY: the action makes one call, which is async-signal-safe.
        unsafe { signal_hook::low_level::register(signal, write) }.map_err(failed)?;
    }
    handler.set_nonblocking(true).map_err(failed)?;
    drop(held);
    let stop = Arc::new(AtomicBool::new(false));
    let is_over = Arc::new(AtomicBool::new(false));
    let (set, orderly) = (Arc::clone(&stop), Arc::clone(&is_over));
    let watch = move || {
        let mut byte = [0];
        let mut first: Option<(libc::c_int, Instant)> = None;
        while arrived.read_exact(&mut byte).is_ok() {
            let signal = libc::c_int::from(byte[0]);
            let (before, at) = *first.get_or_insert_with(|| (signal, Instant::now()));
            let is_second = at.elapsed() > same_request(before, signal);
            set.store(true, Ordering::Relaxed);
            if is_second || !orderly.load(Ordering::Relaxed) {
                end_at_once();
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(failed)?;
    Ok(Preparation { stop, is_over })
}

/// Whether the program that started this one has it ignore a signal, as nohup(1) does with SIGHUP. (Shells do it with SIGINT
/// for what they start in the background; a program that stops pubmark with SIGINT expects an orderly end all the same.)
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: a sigaction of zeros is valid, and the call only fills it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Longest time after the first signal in which this one is the same request.
fn same_request(first: libc::c_int, signal: libc::c_int) -> Duration {
    if (first, signal) == (libc::SIGTERM, libc::SIGTERM) { OF_A_PARENT } else { TOGETHER }
}

#[allow(clippy::disallowed_methods, reason = "asked for twice: what was started is ended by the kernel")]
fn end_at_once() -> ! {
    std::process::exit(i32::from(ExitCode::Interrupted.number()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_parents_threads_are_one_request_and_a_second_ctrl_c_is_another() {
        assert_eq!(same_request(libc::SIGTERM, libc::SIGTERM), OF_A_PARENT);
        for (first, signal) in
            [(libc::SIGINT, libc::SIGINT), (libc::SIGINT, libc::SIGTERM), (libc::SIGTERM, libc::SIGINT)]
        {
            assert_eq!(same_request(first, signal), TOGETHER);
        }
    }

    #[test]
    fn a_signal_that_is_held_arrives_later_and_is_not_lost() {
        let arrived = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(libc::SIGUSR1, Arc::clone(&arrived)).unwrap();
        let held = BlockedSignals::new(&[libc::SIGUSR1]);
        // SAFETY: a plain system call, for the calling thread.
        unsafe { libc::raise(libc::SIGUSR1) };
        assert!(!arrived.load(Ordering::Relaxed));
        drop(held);
        assert!(arrived.load(Ordering::Relaxed));
    }
}
