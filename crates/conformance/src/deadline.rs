//! Deadlines of cases and tests. A call of a client library cannot be cancelled: a test whose library does not return can only
//! end its process. Without that it would wait for ever, and with it every test behind it, and nothing would name it.

use std::io::Write as _;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

/// Longest time for a case, or for a test over a client library. It is more than the waits of a case add up to, which fail first:
/// 120 s for the restart of a slow server, 20 s for each message that does not arrive.
pub const LIMIT: Duration = Duration::from_secs(300);
/// Exit code of the process, as of any test program in which a test failed.
const FAILED: libc::c_int = 101;

thread_local! {
    /// What this thread does.
    static STEP: Arc<Mutex<String>> = Arc::default();
}

/// Notes what the calling thread does from now on. A deadline that passes names it.
pub fn step(name: &str) {
    STEP.with(|step| {
        let mut step = step.lock().unwrap_or_else(PoisonError::into_inner);
        step.clear();
        step.push_str(name);
    });
}

/// Ends the process with a message if it is not dropped within [`LIMIT`].
pub struct Deadline {
    watched: Option<Sender<()>>,
    watch: Option<JoinHandle<()>>,
}

impl Deadline {
    /// A deadline for what the calling thread does from now on, in words.
    pub fn start(what: &str) -> Deadline {
        step("its beginning");
        Deadline::with(what, LIMIT, end_process)
    }

    /// A deadline that passes a message to `late`.
    fn with(what: &str, limit: Duration, late: impl FnOnce(&str) + Send + 'static) -> Deadline {
        // The harness names threads after tests, unless it runs one at a time.
        let test = thread::current().name().filter(|name| *name != "main").unwrap_or("a test").to_owned();
        let (what, step) = (what.to_owned(), STEP.with(Arc::clone));
        let (watched, ended) = mpsc::channel::<()>();
        let watch = move || {
            if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                let step = step.lock().unwrap_or_else(PoisonError::into_inner).clone();
                late(&format!("`{test}` hangs: no end of {what} within {limit:?}; its last step: {step}\n"));
            }
        };
        let watch = Builder::new().name("deadline".to_owned()).spawn(watch).unwrap();
        Deadline { watched: Some(watched), watch: Some(watch) }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        // The thread ends with its channel. Tests that count threads count it no more then.
        drop(self.watched.take());
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
    }
}

/// Ends this process, after a message that the test harness does not capture.
fn end_process(message: &str) {
    let text = format!("{message}the test program ends here: a call of a client library cannot be cancelled\n");
    // If standard error is closed, the exit code remains.
    let _ = std::io::stderr().write_all(text.as_bytes());
    // SAFETY: does not return. Destructors of the library that hangs must not run; servers of tests end with this process.
    unsafe { libc::_exit(FAILED) }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::mpsc::RecvError;

    use super::*;

    /// Environment variable for the process in which a test hangs.
    const HANGS: &str = "PUBMARK_CONFORMANCE_HANGS";
    const AT_ONCE: Duration = Duration::from_millis(1);

    /// A deadline whose message is received.
    fn deadline(limit: Duration) -> (Deadline, mpsc::Receiver<String>) {
        let (to, late) = mpsc::channel();
        // The test may be over.
        let deadline = Deadline::with("a case", limit, move |message| drop(to.send(message.to_owned())));
        (deadline, late)
    }

    #[test]
    fn what_is_late_is_named_with_its_last_step() {
        step("connect");
        let (_deadline, late) = deadline(AT_ONCE);
        let message = late.recv_timeout(LIMIT).unwrap();
        assert!(message.ends_with("` hangs: no end of a case within 1ms; its last step: connect\n"), "{message}");
    }

    #[test]
    fn what_ends_in_time_is_left_alone() {
        let (deadline, late) = deadline(LIMIT);
        drop(deadline);
        // Its thread has ended, and sends nothing any more.
        assert_eq!(late.recv(), Err(RecvError));
    }

    #[test]
    fn a_test_that_hangs_ends_its_process_and_is_named_past_the_harness() {
        if std::env::var_os(HANGS).is_some() {
            step("connect");
            let _deadline = Deadline::with("a case", AT_ONCE, end_process);
            // In a process that does not end, the test passes.
            return thread::sleep(LIMIT / 10);
        }
        let test = "deadline::tests::a_test_that_hangs_ends_its_process_and_is_named_past_the_harness";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", test]).env(HANGS, "1").output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(FAILED), "{printed}");
        assert!(printed.contains("hangs: no end of a case within 1ms; its last step: connect\n"), "{printed}");
    }
}
