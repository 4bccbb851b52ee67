//! The machine and the process that a run uses.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubmark_systems::affinity;

use crate::relay::RelayProcess;

/// The machine and the process of a run. Create it once, before any thread is pinned. Not `Debug`: the command line may contain a password.
#[derive(Clone)]
pub struct Host {
    /// The `pubmark` program: worker processes, supervisors of started systems and the built-in broker are started from it.
    /// The running program if `None`, which must be `pubmark` itself.
    pub program: Option<PathBuf>,
    /// The command line as typed; the record omits its passwords.
    pub command: Vec<String>,
    /// Cores that this process may use.
    pub cores: Vec<u32>,
    /// Folder for files that a run needs while it executes, on a disk; by default the folder of temporary files.
    pub scratch: PathBuf,
    /// The relay between links and a system that runs already, where [`crate::RunSpec::claim_links`] removes this process from the
    /// machine's network; otherwise each run starts one.
    pub relay: Option<Arc<RelayProcess>>,
    /// Set it to end a run in order: what was measured until then is recorded as interrupted.
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
    /// without `/` is searched in `PATH`.
    pub fn with_program(program: impl Into<PathBuf>) -> Host {
        Host { program: Some(found(program.into())), ..Host::this() }
    }
}

/// Its absolute path, as workers are started from other folders.
fn found(program: PathBuf) -> PathBuf {
    if program.components().count() > 1 {
        return std::path::absolute(&program).unwrap_or(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(&program)).find(|file| file.is_file()).unwrap_or(program)
}
