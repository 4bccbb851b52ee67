//! Network namespaces without names: each lives as long as a descriptor, a thread, a process or a socket in it, so
//! there is nothing to clean up, whichever way the process ends.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crate::error::LinkError;

/// Where the calling thread's namespace can be opened.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace. Copies are the same one.
#[derive(Clone, Debug)]
pub struct Namespace {
    name: Arc<str>,
    descriptor: Arc<OwnedFd>,
    inode: u64,
}

/// Where a thread is.
#[derive(Default)]
struct ThreadNamespace {
    /// The namespace that it is in; `None` until it was read.
    here: Option<Namespace>,
    /// It could not come back, for this reason.
    stranded: Option<i32>,
}

thread_local! {
    static THREAD_NAMESPACE: RefCell<ThreadNamespace> = RefCell::default();
}

impl Namespace {
    /// A new, empty namespace; `name` is for messages only. Needs CAP_SYS_ADMIN, in a user namespace if need be.
    pub fn create(name: &str) -> Result<Namespace, LinkError> {
        let own_name = name.to_owned();
        // A thread of its own makes it: no other thread has to come back.
        spawn(name, move || {
            // SAFETY: no pointers are passed; the result is checked.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
                return Err(LinkError::last(format!("make a network namespace for `{own_name}`")));
            }
            Namespace::open(&own_name)
        })?
        .join()
        .unwrap_or_else(|_| Err(LinkError::Stopped { reason: format!("the maker of the namespace `{name}` panicked") }))
    }

    /// The namespace that the calling thread is in.
    pub fn current() -> Result<Namespace, LinkError> {
        THREAD_NAMESPACE.with_borrow_mut(|thread_namespace| thread_namespace.here().cloned())
    }

    /// The calling thread's namespace, from the kernel.
    fn open(name: &str) -> Result<Namespace, LinkError> {
        let file = File::open(OWN).map_err(|error| LinkError::refused(format!("open `{OWN}`"), error))?;
        let inode =
            file.metadata().map_err(|error| LinkError::refused(format!("read the status of `{OWN}`"), error))?.ino();
        Ok(Namespace { name: name.into(), descriptor: Arc::new(file.into()), inode })
    }

    /// What it is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its unique number on this machine: `SIOCGSKNS` of a socket leads to the same number.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// A path under which other processes of the same user reach it while this one lives, as `nsenter --net=` and container
    /// programs accept it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.descriptor.as_raw_fd())
    }

    /// Runs `work` with the calling thread inside. What it opens (sockets, child processes, threads) belongs to the
    /// namespace for ever, and can be used from anywhere. The thread is back when this returns, also if `work` panics;
    /// if the kernel does not let it back, that is the error, and every later call on this thread fails too.
    ///
    /// The caller must not give the thread away within `work`: no `await`.
    pub fn enter<T>(&self, work: impl FnOnce() -> T) -> Result<T, LinkError> {
        let before = THREAD_NAMESPACE.with_borrow_mut(|thread_namespace| thread_namespace.switch(self))?;
        let way_back = ReturnGuard { before, there: self };
        let result = work();
        drop(way_back);
        THREAD_NAMESPACE.with_borrow(ThreadNamespace::check)?;
        Ok(result)
    }

    /// Moves the calling thread inside for the rest of its life, with every thread it starts from then on: for threads
    /// that run a library which opens its own sockets.
    pub fn stay(&self) -> Result<(), LinkError> {
        THREAD_NAMESPACE.with_borrow_mut(|thread_namespace| thread_namespace.switch(self)).map(drop)
    }

    /// A thread that does `work` inside from beginning to end.
    pub fn spawn<T: Send + 'static>(
        &self,
        thread: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<Result<T, LinkError>>, LinkError> {
        let inside = self.clone();
        spawn(thread, move || {
            inside.stay()?;
            Ok(work())
        })
    }

    /// Makes `command` start its process inside.
    pub fn contain(&self, command: &mut Command) {
        let inside = self.clone();
        let enter = move || set(inside.descriptor());
        // SAFETY: between fork and exec only `setns` is called, which is async-signal-safe, on a descriptor that the closure
        // owns; nothing is allocated.
        unsafe { command.pre_exec(enter) };
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&*self.descriptor)
    }
}

impl ThreadNamespace {
    fn check(&self) -> Result<(), LinkError> {
        let Some(code) = self.stranded else { return Ok(()) };
        let namespace = self.here.as_ref().map_or_else(|| "?".to_owned(), |here| here.name.to_string());
        Err(LinkError::Stranded { namespace, source: io::Error::from_raw_os_error(code) })
    }

    fn here(&mut self) -> Result<&Namespace, LinkError> {
        self.check()?;
        match &mut self.here {
            Some(here) => Ok(here),
            none => Ok(none.insert(Namespace::open("home")?)),
        }
    }

    /// Moves the thread; returns where it was.
    fn switch(&mut self, there: &Namespace) -> Result<Namespace, LinkError> {
        let before = self.here()?.clone();
        set(there.descriptor())
            .map_err(|error| LinkError::refused(format!("enter the namespace of `{}`", there.name), error))?;
        self.here = Some(there.clone());
        Ok(before)
    }
}

/// Brings the thread back when dropped.
struct ReturnGuard<'a> {
    before: Namespace,
    there: &'a Namespace,
}

impl Drop for ReturnGuard<'_> {
    fn drop(&mut self) {
        THREAD_NAMESPACE.with_borrow_mut(|thread_namespace| match set(self.before.descriptor()) {
            Ok(()) => thread_namespace.here = Some(self.before.clone()),
            Err(error) => {
                thread_namespace.here = Some(self.there.clone());
                thread_namespace.stranded = Some(error.raw_os_error().unwrap_or(libc::EIO));
            }
        });
    }
}

fn set(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open while it is borrowed; no pointers are passed.
    if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A thread with a name, its failure to start as an error.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, LinkError> {
    Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| LinkError::refused(format!("start the thread `{name}`"), error))
}
