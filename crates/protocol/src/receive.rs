//! Reading from a socket together with the kernel's receive timestamp (`SO_TIMESTAMPING`, software timestamps), and converting
//! that from the wall clock to `CLOCK_MONOTONIC`.
//!
//! A stream socket has one timestamp for each read: that of the segment with the last byte read. It belongs to a message only
//! if the message ends there and the read left the socket empty (a segment merged with later ones has their timestamp).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use crate::clock;

/// How long a sampled offset between the clocks is used.
const OFFSET_AGE_NS: u64 = 100_000_000;
const OFFSET_TRIES: usize = 3;
/// Largest error of a sample: the readings around it are a few hundred ns apart.
const OFFSET_ERROR_NS: u64 = 20_000;
/// Buffer space for one `scm_timestamping` (three `timespec`) and its header.
const CONTROL_BYTES: usize = 128;

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRead {
    /// Bytes read; 0 is the end of the stream.
    pub bytes: usize,
    /// The kernel's stamp of the last byte, ns of `CLOCK_REALTIME`, if stamps are on.
    pub stamp_realtime_ns: Option<u64>,
}

/// Software receive stamps, and the report of software stamps.
const STAMPS: libc::c_uint = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;

/// Turns software receive stamps on.
pub fn enable_stamps(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags = STAMPS;
    // SAFETY: the option's value is a live c_uint of the size given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const flags).cast(),
            size_of::<libc::c_uint>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Are exactly the stamps of [`enable_stamps`] on? False for a number that is no socket.
pub(crate) fn has_stamps(socket: RawFd) -> bool {
    let mut flags: libc::c_uint = 0;
    let mut length = size_of_val(&flags) as libc::socklen_t;
    let place = (&raw mut flags).cast();
    // SAFETY: the kernel writes at most `length` bytes to `place`.
    let result = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, place, &mut length) };
    result == 0 && flags == STAMPS
}

/// Reads once, without stamps.
pub fn read(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<RawRead> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
    let bytes = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    match usize::try_from(bytes) {
        Ok(bytes) => Ok(RawRead { bytes, stamp_realtime_ns: None }),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Buffer for control messages, aligned as the kernel's headers are.
#[repr(C, align(8))]
pub(crate) struct Control([u8; CONTROL_BYTES]);

impl Control {
    pub(crate) const BYTES: usize = CONTROL_BYTES;

    pub(crate) const fn new() -> Control {
        Control([0; CONTROL_BYTES])
    }

    pub(crate) fn pointer(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr().cast()
    }
}

/// Reads once, with the kernel's stamp of the last byte.
pub fn read_stamped(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<RawRead> {
    let mut control = Control::new();
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: an all-zero msghdr is a valid one with nothing in it.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.pointer();
    message.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: `message` points to live memory of the lengths given.
    let bytes = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, 0) };
    let Ok(bytes) = usize::try_from(bytes) else { return Err(io::Error::last_os_error()) };
    Ok(RawRead { bytes, stamp_realtime_ns: stamp_of(&message) })
}

/// The software stamp among the control messages of a read.
pub(crate) fn stamp_of(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel filled `msg_control` and `msg_controllen`; the CMSG functions stay inside them, and the stamp
    // (an array of three timespec, the first for software stamps) is read only where the length shows that it is there.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            let needed = libc::CMSG_LEN(size_of::<[libc::timespec; 3]>() as libc::c_uint) as usize;
            let entry = &*header;
            if entry.cmsg_level == libc::SOL_SOCKET
                && entry.cmsg_type == libc::SCM_TIMESTAMPING
                && entry.cmsg_len as usize >= needed
            {
                let stamp = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                let stamp_ns = stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64;
                return (stamp_ns != 0).then_some(stamp_ns);
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}

/// Converts wall-clock timestamps to `CLOCK_MONOTONIC`, with an offset sampled at most every 100 ms.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallOffset {
    /// `CLOCK_REALTIME` − `CLOCK_MONOTONIC`.
    offset_ns: i128,
    sampled_at_ns: Option<u64>,
}

impl WallOffset {
    /// `stamp_realtime_ns` as a time of `CLOCK_MONOTONIC`; `now_ns` is that clock's present.
    pub fn to_monotonic_ns(&mut self, stamp_realtime_ns: u64, now_ns: u64) -> u64 {
        if self.sampled_at_ns.is_none_or(|at| now_ns.saturating_sub(at) > OFFSET_AGE_NS) {
            self.sample();
            self.sampled_at_ns = Some(now_ns);
        }
        let stamp_ns = self.converted(stamp_realtime_ns);
        if stamp_ns <= now_ns.saturating_add(OFFSET_ERROR_NS) {
            return stamp_ns;
        }
        // No stamp is of the future: the wall clock was set forward since the sample. With the new offset, stamps from
        // before that come out too early, which makes the lateness that is derived from them longer, never shorter.
        self.sample();
        self.converted(stamp_realtime_ns)
    }

    fn converted(&self, stamp_realtime_ns: u64) -> u64 {
        u64::try_from(i128::from(stamp_realtime_ns) - self.offset_ns).unwrap_or(0)
    }

    /// The wall clock between two readings of the monotonic one; of three tries the one with the closest readings.
    fn sample(&mut self) {
        let mut closest = u64::MAX;
        for _ in 0..OFFSET_TRIES {
            let before = clock::monotonic_ns();
            let wall = clock::realtime_ns();
            let after = clock::monotonic_ns();
            let gap = after - before;
            if gap < closest {
                closest = gap;
                self.offset_ns = i128::from(wall) - i128::from(before + gap / 2);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn the_kernel_stamp_lies_between_the_write_and_the_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        enable_stamps(receiver.as_fd()).unwrap();
        let mut offset = WallOffset::default();
        let mut buffer = [0; 64];
        // The kernel enables timestamps in the background, so the first reads may have none.
        let deadline = clock::monotonic_ns() + 10_000_000_000;
        let mut stamps = 0;
        while stamps < 100 && clock::monotonic_ns() < deadline {
            let before = clock::monotonic_ns();
            sender.write_all(b"stamp me").unwrap();
            let read = read_stamped(receiver.as_fd(), &mut buffer).unwrap();
            let after = clock::monotonic_ns();
            assert_eq!(read.bytes, 8);
            if let Some(stamp) = read.stamp_realtime_ns {
                let stamp = offset.to_monotonic_ns(stamp, after);
                // The two readings around the offset's sample are a few hundred ns apart.
                assert!(stamp + 20_000 >= before && stamp <= after + 20_000, "{before} {stamp} {after}");
                stamps += 1;
            }
        }
        assert_eq!(stamps, 100);
    }

    #[test]
    fn an_offset_is_sampled_again_after_100_ms() {
        let now = clock::monotonic_ns();
        let mut offset = WallOffset { offset_ns: 5, sampled_at_ns: Some(now) };
        assert_eq!(offset.to_monotonic_ns(105, now + OFFSET_AGE_NS), 100);
        let wall = clock::realtime_ns();
        let moved = offset.to_monotonic_ns(wall, now + OFFSET_AGE_NS + 1);
        assert!(moved.abs_diff(clock::monotonic_ns()) < 1_000_000_000);
    }

    #[test]
    fn an_offset_is_sampled_again_when_the_wall_clock_was_set_forward() {
        let mut offset = WallOffset::default();
        offset.sample();
        let (now, wall) = (clock::monotonic_ns(), clock::realtime_ns());
        // Sampled just now, and a second too small since.
        offset = WallOffset { offset_ns: offset.offset_ns - 1_000_000_000, sampled_at_ns: Some(now) };
        let stamp = offset.to_monotonic_ns(wall - 40_000_000, now);
        assert!(stamp.abs_diff(now - 40_000_000) < 10_000_000, "{stamp} of {now}");
    }
}
