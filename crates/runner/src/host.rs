//! What a run takes from the machine and the process that it is started on.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubmark_systems::affinity;

use crate::relay::RelayProcess;

/// The machine and the process of a run. Made once, before any thread is pinned. Not `Debug`: the call may hold a password.
#[derive(Clone)]
pub struct Host {
    /// The `pubmark` program: worker processes, supervisors of started systems and the built-in broker are started from it.
    /// The running program if `None`, which has to be `pubmark` itself.
    pub program: Option<PathBuf>,
    /// The call, as it was typed; the record leaves passwords out of it.
    pub command: Vec<String>,
    /// Cores that this process may use.
    pub cores: Vec<u32>,
    /// Folder for files that a run needs while it goes on, on a disk; that of temporary files unless it is set.
    pub scratch: PathBuf,
    /// What leads links to a system that runs already, where [`crate::RunSpec::claim_links`] takes this process off the machine's
    /// network; otherwise each run starts one.
    pub relay: Option<Arc<RelayProcess>>,
    /// Set it to end a run in order: what was measured so far is recorded as interrupted.
    pub stop: Arc<AtomicBool>,
}

impl Host {
    /// This machine, with workers started from the running program.
    pub fn this() -> Host {
        Host {
            program: None,
            command: vec![],
            cores: affinity::own_cores(),
            scratch: std::env::temp_dir(),
            relay: None,
            stop: Arc::default(),
        }
    }

    /// The same for a program that embeds a run: workers are started from `program`, which is a `pubmark` of the same version; a name
    /// without `/` is looked for in `PATH`.
    pub fn with_program(program: impl Into<PathBuf>) -> Host {
        Host { program: Some(found(program.into())), ..Host::this() }
    }
}

/// Its whole path, as workers are started from other folders.
fn found(program: PathBuf) -> PathBuf {
    if program.components().count() > 1 {
        return std::path::absolute(&program).unwrap_or(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(&program)).find(|file| file.is_file()).unwrap_or(program)
}
