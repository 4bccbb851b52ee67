//! Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::exit_code::ExitCode;
use crate::failure::Failure;

type Action = Box<dyn FnMut() + Send>;

/// What the signals of this process do.
#[derive(Clone)]
pub struct Signals {
    stop: Arc<AtomicBool>,
    at_first: Arc<Mutex<Vec<Action>>>,
    at_once: Arc<Mutex<Vec<Action>>>,
}

impl Signals {
    /// Starts to watch. The handler writes a byte to a socket; a thread of its own does the rest, so that nothing
    /// happens inside a signal handler.
    pub fn watch() -> Result<Signals, Failure> {
        let failed = |error: std::io::Error| {
            Failure::from_error(ExitCode::Internal, &error).during("failed to watch for signals")
        };
        let (mut arrived, handler) = UnixStream::pair().map_err(failed)?;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let handler = handler.try_clone().map_err(failed)?;
            signal_hook::low_level::pipe::register(signal, handler).map_err(failed)?;
        }
        let signals = Signals { stop: Arc::default(), at_first: Arc::default(), at_once: Arc::default() };
        let watching = signals.clone();
        let watch = move || {
            let mut byte = [0];
            while arrived.read_exact(&mut byte).is_ok() {
                watching.arrived();
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(failed)?;
        Ok(signals)
    }

    /// Set from the first signal on.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Was there a signal?
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Has `action` run at the first signal, for instance to wake those who wait; at once if it came already. May run twice.
    pub fn at_first(&self, mut action: impl FnMut() + Clone + Send + 'static) {
        lock(&self.at_first).push(Box::new(action.clone()));
        if self.is_stopping() {
            action();
        }
    }

    /// Has `action` run before the process ends at the second signal, for instance to stop a system that was started.
    pub fn at_once(&self, action: impl FnMut() + Send + 'static) {
        lock(&self.at_once).push(Box::new(action));
    }

    fn arrived(&self) {
        if self.stop.swap(true, Ordering::Relaxed) {
            lock(&self.at_once).iter_mut().for_each(|action| action());
            std::process::exit(i32::from(ExitCode::Interrupted.number()));
        }
        lock(&self.at_first).iter_mut().for_each(|action| action());
    }
}

/// An action that panicked leaves the list usable.
fn lock(actions: &Mutex<Vec<Action>>) -> std::sync::MutexGuard<'_, Vec<Action>> {
    actions.lock().unwrap_or_else(PoisonError::into_inner)
}
