//! Loops at idle priority, one on each core: a core that runs one does not sleep, and every other thread displaces it at
//! once.
//!
//! The kernel compares SCHED_IDLE (sched(7)) only within a control group, and kernels with autogroups put each session
//! into a group of its own. So the loops run in a group directly below the root that is itself idle (`cpu.idle`, Linux
//! 5.15). What they take is idle time: it is no load of the machine's, and no CPU limit of pubmark's own group applies.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::affinity;
use crate::cgroup::control;
use crate::cgroup::layout::Layout;
use crate::clock;
use crate::supervisor::messages::{Holdings, Work};
use crate::supervisor::supervised::Supervised;

/// Command-line argument that makes a program run the loops.
pub const VERB: &str = "idle-loops";
/// Weight of a control group's threads against those outside of it: 1 if all others displace them.
const IDLE: &str = "cpu.idle";
/// Cores of the machine, in the format of [`affinity::parse_list`].
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Time after which a thread that ran does not show in the load average of the last minute any more: e⁻⁵ of it is left.
const IN_LOAD_AVERAGE: Duration = Duration::from_secs(300);

/// End of the name of their control group.
const GROUP: &str = "-loops";

/// The loops of this process.
static SHARED: Mutex<State> = Mutex::new(State { running: Weak::new(), ended: None });

struct State {
    running: Weak<Loops>,
    ended: Option<Instant>,
}

fn shared() -> std::sync::MutexGuard<'static, State> {
    // The state is valid after any panic: both fields are set at once.
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loops that run until this is dropped.
#[derive(Debug)]
pub(super) struct Loops {
    pid: u32,
    /// Ends them when it is dropped.
    _held: Mutex<Supervised>,
}

impl Drop for Loops {
    fn drop(&mut self) {
        shared().ended = Some(Instant::now());
    }
}

/// Starts the loops, or returns those that run.
pub(super) fn hold(program: Option<&Path>) -> Result<Arc<Loops>, String> {
    let mut state = shared();
    if let Some(running) = state.running.upgrade() {
        return Ok(running);
    }
    let started = Arc::new(start(program)?);
    state.running = Arc::downgrade(&started);
    Ok(started)
}

/// CPU time that the loops of this process have taken, ns; 0 without any.
pub(crate) fn cpu_ns() -> u64 {
    let running = shared().running.upgrade();
    running.and_then(|loops| clock::read_ns(clock::of_process(loops.pid)?)).unwrap_or(0)
}

/// CPU time that the loops of all pubmark processes of this machine have taken, ns: a node's are those of its worker.
pub(crate) fn machine_cpu_ns() -> u64 {
    let Ok(root) = root() else { return 0 };
    let groups = fs::read_dir(root).into_iter().flatten().flatten().filter(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.starts_with(control::PREFIX) && name.ends_with(GROUP))
    });
    let pids = groups.filter_map(|group| fs::read_to_string(group.path().join("cgroup.procs")).ok());
    let of_group = |pids: String| -> u64 {
        pids.lines().filter_map(|pid| clock::read_ns(clock::of_process(pid.parse().ok()?)?)).sum()
    };
    pids.map(of_group).sum()
}

/// Does the machine's load average contain loops of this process?
pub(crate) fn are_in_load_average() -> bool {
    let state = shared();
    state.running.strong_count() > 0 || state.ended.is_some_and(|ended| ended.elapsed() < IN_LOAD_AVERAGE)
}

/// Can the loops be started?
pub(super) fn are_allowed() -> Result<(), String> {
    let path = root()?.join(format!("{}{}-trial", control::PREFIX, std::process::id()));
    // Whether a group can be created is only known by creating it.
    fs::create_dir(&path).map_err(|error| refused(&path, &error))?;
    let allowed = is_idle_known(&path);
    // Nothing is in the new group, so its removal succeeds.
    let _ = fs::remove_dir(&path);
    allowed
}

fn start(program: Option<&Path>) -> Result<Loops, String> {
    let root = root()?;
    let mut held = Supervised::begin(program).map_err(|error| error.to_string())?;
    let group = root.join(format!("{}{}{GROUP}", control::PREFIX, held.supervisor_pid()));
    let holdings = Holdings { cgroups: vec![group.clone()], ..Holdings::default() };
    held.hold(holdings).map_err(|error| error.to_string())?;
    fs::create_dir(&group).map_err(|error| refused(&group, &error))?;
    is_idle_known(&group)?;
    fs::write(group.join(IDLE), "1").map_err(|error| refused(&group.join(IDLE), &error))?;
    let work = Work {
        // The supervisor's own program.
        program: PathBuf::from("/proc/self/exe"),
        arguments: vec![VERB.to_owned()],
        directory: PathBuf::from("/"),
        cgroups: vec![group],
        ..Work::default()
    };
    let pid = held.start(&work).map_err(|error| error.to_string())?;
    Ok(Loops { pid, _held: Mutex::new(held) })
}

fn is_idle_known(group: &Path) -> Result<(), String> {
    let known = group.join(IDLE).exists();
    known.then_some(()).ok_or_else(|| format!("control groups have no `{IDLE}`, which needs Linux 5.15"))
}

fn refused(path: &Path, error: &io::Error) -> String {
    format!("failed to create `{}` ({error})", path.display())
}

/// The root of the control groups for CPU time.
fn root() -> Result<PathBuf, String> {
    let layout = Layout::read().map_err(|error| format!("control groups cannot be read ({error})"))?;
    let unified = layout.unified.map(|unified| unified.top);
    let top = match (layout.controllers.get("cpu"), unified) {
        (Some(cpu), _) => cpu.top.clone(),
        (None, Some(top)) => {
            let below = fs::read_to_string(top.join("cgroup.subtree_control")).unwrap_or_default();
            let shared = below.split_whitespace().any(|controller| controller == "cpu");
            shared.then_some(top).ok_or("the control groups below the root have no `cpu`")?
        }
        (None, None) => return Err("no control group with `cpu` is mounted".to_owned()),
    };
    // In a container, the highest visible group is none: it has the container's limit, which the loops would use up. Of
    // the two files, only the root has the first (version 1), and only the root lacks the second (version 2).
    let is_root = match layout.controllers.contains_key("cpu") {
        true => top.join("release_agent").exists(),
        false => !top.join("cgroup.type").exists(),
    };
    is_root.then_some(top).ok_or_else(|| "in a container they would use up its CPU limit".to_owned())
}

/// Runs the loops; returns only if they cannot be started. The supervisor ends this process.
pub fn serve() -> io::Result<()> {
    let online = fs::read_to_string(ONLINE)?;
    let cores = affinity::parse_list(&online).unwrap_or_else(affinity::own_cores);
    let loops: Vec<_> = cores
        .into_iter()
        .map(|core| thread::Builder::new().stack_size(64 << 10).spawn(move || keep_awake(core)))
        .collect::<io::Result<_>>()?;
    for one in loops {
        // A loop ends only where its core is not this process's.
        let _ = one.join();
    }
    Ok(())
}

fn keep_awake(core: u32) {
    let set = affinity::set_of(&[core]);
    // SAFETY: an all-zero structure is valid: it has only integer fields, and SCHED_IDLE has priority 0.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: both calls change only the calling thread (0), and their arguments are valid.
    let refused = unsafe {
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters) != 0
            || libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) != 0
    };
    if refused {
        return;
    }
    loop {
        std::hint::spin_loop();
    }
}
