//! Memory that several processes see: a file without a name (memfd_create(2)), mapped in each of them.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// What may lie in shared memory: others write while we read, and fresh memory is zero.
///
/// # Safety
/// The type consists of atomics alone, and all bits zero are a value of it.
pub unsafe trait Shareable: Sync {}

// SAFETY: atomics alone, of which zero is a value.
unsafe impl Shareable for crate::progress::ShardProgress {}

/// One `F`, and behind it a row of `E`.
#[derive(Debug)]
pub struct SharedMemory<F, E> {
    file: OwnedFd,
    start: NonNull<libc::c_void>,
    entries: usize,
    holds: PhantomData<(F, E)>,
}

// SAFETY: the mapping lives as long as this does, and holds atomics alone (`Shareable`).
unsafe impl<F: Shareable, E: Shareable> Send for SharedMemory<F, E> {}
// SAFETY: as above.
unsafe impl<F: Shareable, E: Shareable> Sync for SharedMemory<F, E> {}

impl<F: Shareable, E: Shareable> SharedMemory<F, E> {
    /// All zero.
    ///
    /// # Errors
    /// The kernel gives none.
    pub fn new(entries: usize) -> io::Result<SharedMemory<F, E>> {
        // SAFETY: the name ends with a zero; the descriptor is checked below and owned by nobody else.
        let raw = unsafe { libc::memfd_create(c"pubmark-progress".as_ptr(), libc::MFD_CLOEXEC) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made.
        let file = unsafe { File::from_raw_fd(raw) };
        file.set_len(Self::bytes(entries)? as u64)?;
        Self::map(file.into(), entries)
    }

    /// What another process made, for as many entries.
    ///
    /// # Errors
    /// It is of another size, or cannot be mapped.
    pub fn open(file: OwnedFd, entries: usize) -> io::Result<SharedMemory<F, E>> {
        let file = File::from(file);
        if file.metadata()?.len() != Self::bytes(entries)? as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "shared memory of another size"));
        }
        Self::map(file.into(), entries)
    }

    fn bytes(entries: usize) -> io::Result<usize> {
        let bytes = entries.checked_mul(size_of::<E>()).and_then(|bytes| bytes.checked_add(size_of::<F>()));
        bytes.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "more shards than memory"))
    }

    fn map(file: OwnedFd, entries: usize) -> io::Result<SharedMemory<F, E>> {
        // Entries follow the front without a gap, and pages are aligned for both.
        const {
            assert!(
                size_of::<F>().is_multiple_of(align_of::<E>()) && align_of::<F>() <= 4096 && align_of::<E>() <= 4096
            )
        };
        let bytes = Self::bytes(entries)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, where the kernel likes, of a file of this length; the result is checked.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start).ok_or_else(|| io::Error::other("memory at address 0"))?;
        Ok(SharedMemory { file, start, entries, holds: PhantomData })
    }

    /// The file, for other processes.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// What lies in front.
    pub fn front(&self) -> &F {
        // SAFETY: mapped for `self`'s life, aligned to a page, all bits a value of it.
        unsafe { self.start.cast::<F>().as_ref() }
    }

    /// The row.
    pub fn entries(&self) -> &[E] {
        // SAFETY: as above; the row begins behind the front (`map` checks the alignment) and has this many entries.
        unsafe {
            let first = self.start.cast::<u8>().add(size_of::<F>()).cast::<E>();
            std::slice::from_raw_parts(first.as_ptr(), self.entries)
        }
    }
}

impl<F, E> Drop for SharedMemory<F, E> {
    fn drop(&mut self) {
        let bytes = size_of::<F>() + self.entries * size_of::<E>();
        // SAFETY: mapped by `map` with this length, and nobody can hold a reference any more.
        unsafe { libc::munmap(self.start.as_ptr(), bytes) };
    }
}
