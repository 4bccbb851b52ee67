//! Checks of the kernel: clocks, scheduling, receive timestamps, tunnels.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use pubmark_engine::precision::{self, Precision};
use pubmark_report::numbers::three_digits;
use pubmark_systems::awake::Awake;

use super::{Finding, read};

/// A governor that changes the frequency with the load makes a system under low load look slow.
pub fn governor() -> Finding {
    match read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").as_deref() {
        Some("performance") => Finding::good("performance: the processor keeps its frequency"),
        Some(other) => Finding::limited(
            format!("{other}: the frequency follows the load"),
            "`cpupower frequency-set -g performance` as root",
        ),
        None => Finding::good("none visible: the frequency is not ours to set (usual in virtual machines)"),
    }
}

/// The clock is read many thousand times a second: this must work without a system call.
pub fn clock_source() -> Finding {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match read(path).as_deref() {
        Some(source @ ("tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "arch_sys_counter")) => {
            Finding::good(format!("{source}: read without a system call"))
        }
        Some(source) => Finding::limited(
            format!("{source}: each reading is a system call"),
            "boot with `clocksource=tsc` where the processor's counter is stable",
        ),
        None => Finding::limited("the clock source cannot be read", "run on Linux with /sys mounted"),
    }
}

/// Can threads of this process run under SCHED_FIFO? Tested with a thread that ends at once.
pub fn allows_realtime() -> bool {
    let allowed = std::thread::spawn(|| {
        // SAFETY: the structure has only integer fields, for which zero is valid; musl has more of them than glibc.
        let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
        parameters.sched_priority = 1;
        // SAFETY: `parameters` is a valid sched_param; 0 names the calling thread.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0 }
    });
    allowed.join().unwrap_or(false)
}

/// Is SCHED_FIFO allowed, which `--realtime` requests?
pub fn realtime() -> Finding {
    match allows_realtime() {
        true => Finding::good("SCHED_FIFO is allowed: `--realtime` keeps the schedule on a busy machine"),
        false => Finding::limited(
            "SCHED_FIFO is not allowed: `--realtime` would have no effect",
            "run as root, or `setcap cap_sys_nice+ep` on the program",
        ),
    }
}

/// The wake-up latency of threads shows whether `--awake`, which prevents CPU idle states, is worth it.
pub fn wake_ups() -> Finding {
    let (p50_us, p99_us) = wake_up_us();
    let found = format!("a thread that is due wakes up {p50_us:.0} µs late (p50), {p99_us:.0} µs (p99)");
    match Awake::is_allowed() {
        _ if p99_us < LATE_US => Finding::good(found),
        Ok(_) => Finding::good(format!("{found}; `--awake` prevents CPU idle states")),
        Err(error) => Finding::limited(format!("{found}, and `--awake` would have no effect: {error}"), error.hint()),
    }
}

/// Wake-ups that are later than this are reported, µs.
const LATE_US: f64 = 200.0;

/// How late threads wake up on the machine as it is: p50 and p99 of 200 wake-ups, µs.
fn wake_up_us() -> (f64, f64) {
    const SLEEP: Duration = Duration::from_millis(2);
    let mut late: Vec<Duration> = (0..200)
        .map(|_| {
            let before = Instant::now();
            std::thread::sleep(SLEEP);
            before.elapsed().saturating_sub(SLEEP)
        })
        .collect();
    late.sort_unstable();
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    (at(0.5), at(0.99))
}

/// Half of the confidence interval of p99, µs; a smaller one is precise enough for any limit that a user sets.
const PRECISE_US: f64 = 250.0;

/// How precise will the p99 of a latency be, with the machine as it is now?
pub fn precision() -> Finding {
    let found = match precision::measure() {
        Ok(found) => found,
        Err(error) => {
            return Finding::bad(format!("the self-test failed: {error}"), "raise the limit of threads and open files");
        }
    };
    let text = precise(&found);
    match found.p99_us / 2.0 < PRECISE_US {
        true => Finding::good(text),
        false => Finding::limited(text, "stop other programs, or run with `--realtime` or `--awake`"),
    }
}

/// The result of the self-test [`precision::measure`] in words.
pub fn precise(found: &Precision) -> String {
    let half = |width_us: f64| three_digits(width_us / 2_000.0);
    format!(
        "p50 will be known to about ± {} ms, p99 to ± {} ms, as busy as this machine is now",
        half(found.p50_us),
        half(found.p99_us)
    )
}

/// Does the kernel timestamp messages on arrival? Tested with a loopback connection.
pub fn receive_stamps() -> Finding {
    match stamp_seen() {
        Ok(true) => Finding::good("the kernel stamps what arrives: our own lateness in reading can be seen"),
        Ok(false) => Finding::limited(
            "the kernel gives no receive stamps",
            "receive lateness falls back to its upper bound; a newer kernel, or another than gVisor, has them",
        ),
        Err(error) => Finding::bad(
            format!("a connection to ourselves failed: {error}"),
            "look at the loopback interface: `ip address show lo`",
        ),
    }
}

/// Attempts of [`stamp_seen`]: the kernel enables timestamps with a delay after the first socket requests them.
const TRIES: u32 = 20;
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

fn stamp_seen() -> std::io::Result<bool> {
    let listener = listen()?;
    let mut sender = TcpStream::connect(listener.local_addr()?)?;
    let (receiver, _) = listener.accept()?;
    let required: libc::c_uint = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    // SAFETY: the option's value is a c_uint of the length given.
    let set = unsafe {
        libc::setsockopt(
            receiver.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const required).cast(),
            size_of_val(&required) as libc::socklen_t,
        )
    };
    if set != 0 {
        return Ok(false);
    }
    for _ in 0..TRIES {
        sender.write_all(b"?")?;
        if is_next_stamped(&receiver)? {
            return Ok(true);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(false)
}

/// Ports that are tried: below the kernel's range for outgoing connections.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// Listens on a free port of the loopback interface.
fn listen() -> std::io::Result<TcpListener> {
    let mut refused = std::io::Error::from(std::io::ErrorKind::AddrInUse);
    for port in PORTS {
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Reads a byte. Returns whether the kernel's timestamp came with it.
fn is_next_stamped(receiver: &TcpStream) -> std::io::Result<bool> {
    let mut byte = [0u8; 1];
    // Aligned as control messages must be; larger than the three `timespec` values of a timestamp.
    let mut control = [0u64; 16];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: byte.len() };
    // SAFETY: an all-zero `msghdr` is valid: no address, no buffers, no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: `message` points to buffers that live until the call is over, with their true lengths.
    if unsafe { libc::recvmsg(receiver.as_raw_fd(), &mut message, 0) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: `message` was filled by recvmsg; the macro stays within the control buffer's length.
    let first = unsafe { libc::CMSG_FIRSTHDR(&message).as_ref() };
    Ok(first.is_some_and(|header| header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_TIMESTAMPING))
}

/// Is `/dev/net/tun` available? The emulation of links needs it.
pub fn tun() -> Finding {
    let opened = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    match opened {
        Ok(_) => Finding::good("/dev/net/tun can be opened: emulated links are possible"),
        Err(error) => Finding::limited(
            format!("/dev/net/tun cannot be opened ({}): no emulated links", error.kind()),
            "`modprobe tun` as root; in a container `--device /dev/net/tun --cap-add NET_ADMIN`",
        ),
    }
}
