//! Memory shared by several processes: an unnamed file (memfd_create(2)), mapped in each of them.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// No process that has the file can change its size or remove these seals. A process that reads beyond the end of a
/// shortened file is killed (SIGBUS).
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A type that may be in shared memory: other processes write while this one reads, and new memory is zero.
///
/// # Safety
/// The type must consist of atomics only, and all bits zero must be a valid value.
pub unsafe trait Shareable: Sync {}

// SAFETY: the structure has only atomics, for which zero is a valid value.
unsafe impl Shareable for crate::progress::ShardProgress {}

/// One `F`, followed by an array of `E`.
#[derive(Debug)]
pub struct SharedMemory<F, E> {
    file: OwnedFd,
    start: NonNull<libc::c_void>,
    entries: usize,
    holds: PhantomData<(F, E)>,
}

// SAFETY: the mapping exists as long as this value, and contains only atomics (`Shareable`).
unsafe impl<F: Shareable, E: Shareable> Send for SharedMemory<F, E> {}
// SAFETY: as above.
unsafe impl<F: Shareable, E: Shareable> Sync for SharedMemory<F, E> {}

impl<F: Shareable, E: Shareable> SharedMemory<F, E> {
    /// New memory, all zero.
    ///
    /// # Errors
    /// The kernel does not provide the memory.
    pub fn new(entries: usize) -> io::Result<SharedMemory<F, E>> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name ends with a zero byte. The descriptor is checked below and has no other owner.
        let raw = unsafe { libc::memfd_create(c"pubmark-progress".as_ptr(), flags) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created.
        let file = unsafe { File::from_raw_fd(raw) };
        file.set_len(Self::bytes(entries)? as u64)?;
        // SAFETY: the call has integer arguments only, and the descriptor is ours.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Self::map(file.into(), entries)
    }

    /// Maps memory that another process created, with all its entries.
    ///
    /// # Errors
    /// Its size does not fit, its size could still change, or it cannot be mapped.
    pub fn open(file: OwnedFd) -> io::Result<SharedMemory<F, E>> {
        let unfit = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
        let file = File::from(file);
        // SAFETY: the call has integer arguments only, and the descriptor is open.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & SEALS != SEALS {
            return Err(unfit("shared memory whose size is not sealed"));
        }
        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let row = bytes.checked_sub(size_of::<F>()).filter(|row| row.is_multiple_of(size_of::<E>()));
        let row = row.ok_or_else(|| unfit("shared memory of another size"))?;
        Self::map(file.into(), row / size_of::<E>())
    }

    fn bytes(entries: usize) -> io::Result<usize> {
        let bytes = entries.checked_mul(size_of::<E>()).and_then(|bytes| bytes.checked_add(size_of::<F>()));
        bytes.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "more shards than memory"))
    }

    fn map(file: OwnedFd, entries: usize) -> io::Result<SharedMemory<F, E>> {
        // Entries follow the front without padding, and pages are aligned for both.
        const {
            assert!(
                size_of::<F>().is_multiple_of(align_of::<E>()) && align_of::<F>() <= 4096 && align_of::<E>() <= 4096
            )
        };
        let bytes = Self::bytes(entries)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses, of a file of this length; the result is
        // checked.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start).ok_or_else(|| io::Error::other("memory at address 0"))?;
        Ok(SharedMemory { file, start, entries, holds: PhantomData })
    }

    /// The file, to be passed to other processes.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The data before the entries.
    pub fn front(&self) -> &F {
        // SAFETY: mapped for the lifetime of `self`, aligned to a page, and all bit patterns are valid values.
        unsafe { self.start.cast::<F>().as_ref() }
    }

    /// The entries.
    pub fn entries(&self) -> &[E] {
        // SAFETY: as above. The array begins after the front (`map` checks the alignment) and has this many entries.
        unsafe {
            let first = self.start.cast::<u8>().add(size_of::<F>()).cast::<E>();
            std::slice::from_raw_parts(first.as_ptr(), self.entries)
        }
    }
}

impl<F, E> Drop for SharedMemory<F, E> {
    fn drop(&mut self) {
        let bytes = size_of::<F>() + self.entries * size_of::<E>();
        // SAFETY: mapped by `map` with this length, and no reference to it can exist any more.
        unsafe { libc::munmap(self.start.as_ptr(), bytes) };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::progress::ShardProgress;

    type Rows = SharedMemory<ShardProgress, ShardProgress>;

    #[test]
    fn shared_memory_cannot_shrink_while_others_use_it() {
        let ours = Rows::new(3).unwrap();
        let file = File::from(ours.file().try_clone_to_owned().unwrap());
        for bytes in [0, 1 << 20] {
            assert_eq!(file.set_len(bytes).unwrap_err().kind(), io::ErrorKind::PermissionDenied, "{bytes} bytes");
        }
        // SAFETY: the call has integer arguments only, and the descriptor is open.
        let more = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE) };
        assert_eq!(more, -1, "a seal against writing would stop the run");
        assert_eq!(Rows::open(file.into()).unwrap().entries().len(), 3);
    }

    #[test]
    fn memory_that_could_still_shrink_is_refused() {
        // SAFETY: the name ends with a zero byte. The descriptor is checked and has no other owner.
        let raw = unsafe { libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        assert!(raw >= 0);
        // SAFETY: the descriptor was just created.
        let file = unsafe { File::from_raw_fd(raw) };
        file.set_len(4 * size_of::<ShardProgress>() as u64).unwrap();
        let refused = Rows::open(file.into()).unwrap_err().to_string();
        assert!(refused.contains("not sealed"), "{refused}");
    }
}
