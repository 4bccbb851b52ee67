//! How a supervisor starts a program: in its own session, in its control groups, on its cores, killed if the supervisor
//! ends.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::affinity;
use crate::supervisor::messages::Work;

/// Why a program was not started.
#[derive(Debug)]
pub struct StartFailure {
    /// What failed, and on what.
    pub reason: String,
    /// The kernel's error number.
    pub errno: Option<i32>,
    /// The program itself could not be executed; its preparation did not fail.
    pub program: bool,
}

/// Starts a program and returns its process id. The caller must read its status.
pub fn start(work: &Work) -> Result<u32, StartFailure> {
    let failed =
        |reason: String| move |error: io::Error| StartFailure { reason, errno: error.raw_os_error(), program: false };
    let mut command = Command::new(&work.program);
    command.args(&work.arguments).envs(work.environment.iter().cloned()).current_dir(&work.directory);
    command.stdin(Stdio::null());
    match &work.log {
        Some(path) => {
            let shown = || format!("failed to write `{}`", path.display());
            let log = open_log(path, work.appends).map_err(failed(shown()))?;
            let second = log.try_clone().map_err(failed(shown()))?;
            command.stdout(log).stderr(second);
        }
        None => {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
    }
    let members = work.cgroups.iter().map(|folder| CString::new(folder.join("cgroup.procs").as_os_str().as_bytes()));
    let members: Vec<CString> = members.collect::<Result<_, _>>().map_err(|_| StartFailure {
        reason: "a control group's name holds a zero byte".to_owned(),
        errno: None,
        program: false,
    })?;
    let cores = (!work.cores.is_empty()).then(|| affinity::set_of(&work.cores));
    let supervisor = std::process::id() as libc::pid_t;
    // SAFETY: between fork and exec only calls that POSIX allows there are made, and nothing is allocated.
    unsafe { command.pre_exec(move || prepare(supervisor, &members, cores.as_ref())) };
    #[allow(clippy::zombie_processes, reason = "the supervisor waits for any child, adopted ones too")]
    let child = command.spawn().map_err(|error| StartFailure {
        program: true,
        ..failed(format!("failed to run `{}`", work.program.display()))(error)
    })?;
    Ok(child.id())
}

fn open_log(path: &Path, appends: bool) -> io::Result<File> {
    if appends { File::options().create(true).append(true).open(path) } else { File::create(path) }
}

/// Runs in the new process before it executes the program.
fn prepare(supervisor: libc::pid_t, members: &[CString], cores: Option<&libc::cpu_set_t>) -> io::Result<()> {
    // SAFETY: plain system calls on valid arguments.
    unsafe {
        if libc::setsid() == -1 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
            return Err(io::Error::last_os_error());
        }
        // The supervisor may have ended before the call above.
        if libc::getppid() != supervisor {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        for file in members {
            join(file)?;
        }
        if let Some(set) = cores
            && libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) == -1
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Moves the calling process, for which 0 stands (cgroups(7)), into a control group.
fn join(file: &CString) -> io::Result<()> {
    // SAFETY: the path ends with a zero byte, the buffer is valid, the descriptor is ours.
    unsafe {
        let descriptor = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if descriptor == -1 {
            return Err(io::Error::last_os_error());
        }
        let written = libc::write(descriptor, c"0".as_ptr().cast(), 1);
        let outcome = if written == 1 { Ok(()) } else { Err(io::Error::last_os_error()) };
        libc::close(descriptor);
        outcome
    }
}
