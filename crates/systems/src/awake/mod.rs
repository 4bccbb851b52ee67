//! Prevents CPU idle states: a core in one takes time to wake up, in a virtual machine hundreds of µs, and messages that are
//! due meanwhile are late.

mod idle_states;
mod loops;

use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

pub use loops::{VERB, serve};
pub(crate) use loops::{are_in_load_average, cpu_ns, machine_cpu_ns};

/// The reason why idle states are not prevented.
#[derive(Debug, Error)]
pub enum AwakeError {
    /// The kernel has a driver for idle states, and its device does not exist or cannot be written: it belongs to root.
    #[error("{device}: {0}", device = idle_states::DEVICE)]
    Device(std::io::Error),
    /// Nothing disables idle states, and loops cannot take their place.
    #[error(
        "this kernel has no driver for CPU idle states, as in virtual machines whose host decides about them, and loops at \
         idle priority cannot take its place: {0}"
    )]
    Loops(String),
}

impl AwakeError {
    /// What the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            AwakeError::Device(_) => "run as root, or give your user write access to /dev/cpu_dma_latency",
            AwakeError::Loops(_) => "run as root outside containers, or boot this kernel with `idle=poll`",
        }
    }
}

/// How CPU idle states are prevented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The kernel's idle states are disabled.
    IdleStates,
    /// A loop at idle priority on each core.
    Loops,
}

/// CPU idle states are prevented until this is dropped, or the process ends for any reason.
#[derive(Debug)]
pub struct Awake {
    means: Means,
    _idle_states: Option<idle_states::Disabled>,
    _loops: Option<Arc<loops::Loops>>,
}

impl Awake {
    /// Disables CPU idle states, or, where the kernel has no driver for them, starts loops from `program`: the running
    /// program if `None`. It must accept the argument [`VERB`].
    ///
    /// # Errors
    /// Neither is possible.
    pub fn hold(program: Option<&Path>) -> Result<Awake, AwakeError> {
        if idle_states::have_driver() {
            let disabled = idle_states::Disabled::hold().map_err(AwakeError::Device)?;
            return Ok(Awake { means: Means::IdleStates, _idle_states: Some(disabled), _loops: None });
        }
        Awake::by_loops(program)
    }

    /// Starts the loops, also where idle states could be disabled.
    ///
    /// # Errors
    /// They cannot be started.
    pub fn by_loops(program: Option<&Path>) -> Result<Awake, AwakeError> {
        let loops = loops::hold(program).map_err(AwakeError::Loops)?;
        Ok(Awake { means: Means::Loops, _idle_states: None, _loops: Some(loops) })
    }

    /// How idle states are prevented.
    pub fn means(&self) -> Means {
        self.means
    }

    /// Is it possible on this machine, and how?
    ///
    /// # Errors
    /// The reason why not.
    pub fn is_allowed() -> Result<Means, AwakeError> {
        match idle_states::have_driver() {
            true => idle_states::is_allowed().map(|()| Means::IdleStates).map_err(AwakeError::Device),
            false => loops::are_allowed().map(|()| Means::Loops).map_err(AwakeError::Loops),
        }
    }
}
