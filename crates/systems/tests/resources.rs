//! The usage of a real mosquitto under a real load, measured in two ways if there are two.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod common;

use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{becomes_true, mosquitto_is_installed};
use pubmark_systems::cgroup::{CgroupFolders, CostSource};
use pubmark_systems::meter::{Reading, SystemMeter, Workers};
use pubmark_systems::network::SocketMeter;
use pubmark_systems::sampler::{Sample, Sampler};

/// Longest wait for a response of a broker.
const PATIENCE: Duration = Duration::from_secs(30);

/// A mosquitto of this test, and its control group if one can be created.
struct Broker {
    child: Child,
    port: u16,
    cgroup: Option<CgroupFolders>,
    _folder: tempfile::TempDir,
}

impl Broker {
    fn start() -> Option<Broker> {
        if !mosquitto_is_installed() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let port = pubmark_systems::ports::free(1).unwrap()[0];
        let configuration = folder.path().join("mosquitto.conf");
        let user = "user root\nallow_anonymous true\nset_tcp_nodelay true\nmax_queued_messages 1000000";
        fs::write(&configuration, format!("listener {port} 127.0.0.1\n{user}\n")).unwrap();
        let cgroup = make_cgroup(port);
        let doors: Vec<PathBuf> = cgroup.iter().flat_map(folders).map(|folder| folder.join("cgroup.procs")).collect();
        let mut command = Command::new("mosquitto");
        command.arg("-c").arg(&configuration).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: between fork and exec, this only opens and writes files.
        unsafe { command.pre_exec(move || doors.iter().try_for_each(|door| fs::write(door, "0"))) };
        let child = command.spawn().unwrap();
        let broker = Broker { child, port, cgroup, _folder: folder };
        assert!(becomes_true(|| TcpStream::connect(("127.0.0.1", port)).is_ok()), "mosquitto does not listen");
        Some(broker)
    }

    fn place(&self) -> CostSource {
        CostSource { pid: self.child.id(), cgroup: self.cgroup.clone() }
    }

    fn connect(&self, name: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let (length, name_length) = (12 + name.len() as u8, name.len() as u8);
        // MQTT 3.1.1 §3.1: protocol name, level 4, clean session, keep-alive 0, client id.
        let mut packet = vec![0x10, length, 0, 4, b'M', b'Q', b'T', b'T', 4, 2, 0, 0, 0, name_length];
        packet.extend_from_slice(name.as_bytes());
        stream.write_all(&packet).unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        stream
    }

    /// A subscriber of topic `t`. It reads 5 bytes of SUBACK (MQTT 3.1.1 §3.9).
    fn subscriber(&self) -> TcpStream {
        let mut stream = self.connect("subscriber");
        stream.write_all(&[0x82, 6, 0, 1, 0, 1, b't', 0]).unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
        stream
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        for folder in self.cgroup.iter().flat_map(folders) {
            // A group stays busy for a moment after its last process has ended.
            becomes_true(|| fs::remove_dir(folder).is_ok());
        }
    }
}

fn folders(place: &CgroupFolders) -> impl Iterator<Item = &PathBuf> {
    [&place.unified, &place.cpu, &place.cpuacct, &place.memory].into_iter().flatten()
}

/// Creates a group in each hierarchy that we may write to; records a skip if none of them counts CPU time.
fn make_cgroup(port: u16) -> Option<CgroupFolders> {
    let make = |root: &str| {
        let folder = Path::new("/sys/fs/cgroup").join(root).join(format!("pubmark-test-{port}"));
        fs::create_dir(&folder).ok().map(|()| folder)
    };
    let exists = |root: &str| Path::new("/sys/fs/cgroup").join(root).join("cgroup.procs").exists();
    let place = CgroupFolders {
        cpuacct: exists("cpuacct").then(|| make("cpuacct")).flatten(),
        cpu: exists("cpu").then(|| make("cpu")).flatten(),
        memory: exists("memory").then(|| make("memory")).flatten(),
        unified: ["unified", "."].into_iter().find(|root| exists(root)).and_then(make),
        cpuset: None,
    };
    if place.cpuacct.is_none() && place.unified.is_none() {
        pubmark_testing::skip("no control group can be made here");
        return None;
    }
    Some(place)
}

/// A PUBLISH to topic `t` at QoS 0 with a body of 100 bytes (MQTT 3.1.1 §3.3).
fn message() -> Vec<u8> {
    let mut packet = vec![0x30, 103, 0, 1, b't'];
    packet.resize(105, b'x');
    packet
}

/// Publishes messages and reads all of them back; returns the bytes in each direction.
fn load(publisher: &mut TcpStream, subscriber: &mut TcpStream, messages: usize) -> usize {
    let (burst, mut read) = (message().repeat(100), vec![0; 100 * 105]);
    for _ in 0..messages / 100 {
        publisher.write_all(&burst).unwrap();
        subscriber.read_exact(&mut read).unwrap();
    }
    messages / 100 * burst.len()
}

fn cpu_ms(meter: &mut SystemMeter) -> f64 {
    meter.read().0.unwrap().cpu_ns as f64 / 1e6
}

#[test]
fn cpu_time_of_the_control_group_and_of_the_tree_agree() {
    let Some(broker) = Broker::start() else { return };
    if broker.cgroup.is_none() {
        return;
    }
    let unified = broker.cgroup.as_ref().and_then(|place| place.unified.clone());
    let version_2 = CgroupFolders { unified, ..CgroupFolders::default() };
    let mut ways: Vec<(&str, SystemMeter)> = [
        ("tree", None),
        ("control group", broker.cgroup.clone()),
        ("version 2", version_2.unified.is_some().then_some(version_2)),
    ]
    .into_iter()
    .filter(|(name, cgroup)| *name == "tree" || cgroup.is_some())
    .map(|(name, cgroup)| (name, SystemMeter::new(&[CostSource { cgroup, ..broker.place() }])))
    .collect();
    let (mut publisher, mut subscriber) = (broker.connect("publisher"), broker.subscriber());
    let before: Vec<f64> = ways.iter_mut().map(|(_, meter)| cpu_ms(meter)).collect();
    load(&mut publisher, &mut subscriber, 40_000);
    let used: Vec<f64> = ways.iter_mut().zip(before).map(|((_, meter), before)| cpu_ms(meter) - before).collect();
    for ((name, _), ms) in ways.iter().zip(&used) {
        eprintln!("{name}: {ms:.2} ms");
        // The two figures are not read at the same instant.
        assert!(
            *ms > 10.0 && (ms - used[0]).abs() <= 0.03 * used[0] + 2.0,
            "{name}: {ms} ms, the tree says {}",
            used[0]
        );
    }
    let reading = ways[1].1.read().0.unwrap();
    if broker.cgroup.as_ref().is_some_and(|place| place.memory.is_some()) {
        assert!(
            reading.cgroup_peak_bytes >= reading.cgroup_bytes && reading.cgroup_bytes > Some(100_000),
            "{reading:?}"
        );
    }
}

#[test]
fn bytes_of_a_known_transfer_are_exact() {
    let Some(broker) = Broker::start() else { return };
    let (mut publisher, mut subscriber) = (broker.connect("publisher"), broker.subscriber());
    let pids = [broker.child.id()];
    let mut meter = SocketMeter::new(&pids, &[]).unwrap();
    let bytes = load(&mut publisher, &mut subscriber, 20_000) as u64;
    // Bytes that were read are acknowledged within 40 ms, the kernel's delay of acknowledgements. This also holds for
    // the responses to CONNECT and SUBSCRIBE, 4 and 5 bytes, which may be acknowledged after the meter has started.
    let meter = std::cell::RefCell::new(&mut meter);
    let last = std::cell::Cell::new(None);
    let reported = becomes_true(|| {
        let (system, own) = meter.borrow_mut().read(&pids, &[std::process::id()]).unwrap();
        let system = system.unwrap();
        last.set(Some((system, own)));
        assert!(system.sent_bytes <= bytes + 4 + 4 + 5, "{system:?}");
        (system.received_bytes, own.received_bytes, own.sent_bytes) == (bytes, bytes, bytes)
            && system.sent_bytes >= bytes
    });
    assert!(reported, "{bytes} bytes each way, told {:?}", last.get());
    // A new connection adds CONNECT and CONNACK, and the SYN, which the kernel counts as a sent byte.
    let _third = broker.connect("third");
    let (system, own) = meter.borrow_mut().read(&pids, &[std::process::id()]).unwrap();
    let system = system.unwrap();
    assert_eq!((system.received_bytes, own.received_bytes), (bytes + 14 + 5, bytes + 4));
    assert!((bytes + 19..=bytes + 20).contains(&own.sent_bytes), "{own:?}");
}

#[test]
fn samples_of_a_broker_under_load_hold_everything_and_only_rise() {
    let Some(broker) = Broker::start() else { return };
    let sampler = Sampler::start(&[broker.place()], &[broker.port], Workers::default(), true).unwrap();
    let (mut publisher, mut subscriber) = (broker.connect("publisher"), broker.subscriber());
    sampler.sample_now();
    let start = Instant::now();
    let mut bytes = 0;
    while start.elapsed() < Duration::from_millis(1_500) {
        bytes += load(&mut publisher, &mut subscriber, 500) as u64;
    }
    sampler.sample_now();
    let samples = sampler.finish();
    let all = samples.all();
    let counters: [fn(&Reading) -> Option<u64>; 5] = [
        |reading| Some(reading.cpu_ns),
        |reading| Some(reading.traffic?.received_bytes),
        |reading| Some(reading.traffic?.sent_bytes),
        |reading| Some(reading.switches?.voluntary),
        |reading| Some(reading.switches?.involuntary),
    ];
    for side in [|sample: &Sample| sample.system, |sample: &Sample| sample.generator] {
        for counter in counters {
            let values: Vec<u64> = all.iter().filter_map(|sample| counter(&side(sample)?)).collect();
            assert!(values.len() >= 4 && values.is_sorted(), "{values:?}");
        }
    }
    // From the second sample to the last but one there is only the load.
    let (first_ns, last_ns) = (all[1].at_ns, all[all.len() - 2].at_ns);
    let resources = samples.resources(first_ns, last_ns);
    let (system, generator) = (resources.system.unwrap(), resources.generator.unwrap());
    eprintln!("{system:?}\n{generator:?}");
    assert!(system.received_bytes.unwrap().abs_diff(bytes) <= 16, "{bytes} {system:?}");
    assert!(generator.received_bytes.unwrap().abs_diff(bytes) <= 16, "{bytes} {generator:?}");
    assert!(system.cpu_seconds > 0.01 && system.voluntary_switches > Some(100), "{system:?}");
    assert!(
        system.idle_rss_bytes > Some(1 << 20) && system.peak_pss_bytes.unwrap() <= system.peak_rss_bytes,
        "{system:?}"
    );
    // Two clients, a listener, standard streams.
    assert!(system.threads >= Some(1) && system.descriptors >= Some(6), "{system:?}");
    assert_eq!(resources.limits, None);
    let rows = samples.rows(first_ns, last_ns);
    assert!(rows.iter().any(|row| row.system_received_per_s > Some(1_000.0)), "{rows:?}");
}

#[test]
fn a_broker_that_ends_within_the_window_has_no_cost() {
    let Some(mut broker) = Broker::start() else { return };
    let sampler = Sampler::start(&[broker.place()], &[broker.port], Workers::default(), true).unwrap();
    let (mut publisher, mut subscriber) = (broker.connect("publisher"), broker.subscriber());
    load(&mut publisher, &mut subscriber, 500);
    sampler.sample_now();
    broker.child.kill().unwrap();
    broker.child.wait().unwrap();
    sampler.sample_now();
    let samples = sampler.finish();
    let at = |back: usize| samples.all()[samples.all().len() - back].at_ns;
    let resources = samples.resources(at(3), at(1));
    assert_eq!(resources.system, None, "a broker that is gone costs an unknown amount, not 0");
    assert!(resources.generator.is_some());
    let rows = samples.rows(at(3), at(1));
    let last = rows.last().unwrap();
    assert_eq!((last.system_cores, last.system_rss_bytes, last.system_received_per_s), (None, None, None));
    assert!(samples.resources(samples.all()[0].at_ns, at(3)).system.is_some(), "what was used until then is known");
}

#[test]
fn limits_that_throttle_a_broker_are_reported() {
    let Some(broker) = Broker::start() else { return };
    let Some(folder) = broker.cgroup.as_ref().and_then(|place| place.cpu.as_ref().or(place.unified.as_ref())) else {
        return;
    };
    // Limit: a tenth of a core, in periods of 10 ms.
    let written = fs::write(folder.join("cpu.cfs_period_us"), "10000")
        .and_then(|()| fs::write(folder.join("cpu.cfs_quota_us"), "1000"))
        .or_else(|_| fs::write(folder.join("cpu.max"), "1000 10000"));
    if let Err(error) = written {
        pubmark_testing::skip(format_args!("CPU time cannot be limited here ({error})"));
        return;
    }
    let sampler = Sampler::start(&[broker.place()], &[broker.port], Workers::default(), true).unwrap();
    let (mut publisher, mut subscriber) = (broker.connect("publisher"), broker.subscriber());
    sampler.sample_now();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        load(&mut publisher, &mut subscriber, 500);
    }
    sampler.sample_now();
    let samples = sampler.finish();
    let (first_ns, last_ns) = (samples.all()[1].at_ns, samples.all()[samples.all().len() - 2].at_ns);
    let resources = samples.resources(first_ns, last_ns);
    let effect = resources.limits.unwrap();
    eprintln!("{effect:?} {:?}", resources.system);
    assert!(effect.was_binding() && effect.throttled_periods <= effect.periods, "{effect:?}");
    assert!(effect.throttled_seconds > Some(0.1), "{effect:?}");
    assert!(resources.system.unwrap().cores < 0.15, "{resources:?}");
    let rows = samples.rows(first_ns, last_ns);
    assert!(rows.iter().any(|row| row.system_throttled.is_some_and(|share| (0.2..=1.0).contains(&share))), "{rows:?}");
}

/// CPU time of the sampler's thread until now, s (`/proc/PID/task/TID/schedstat`: ns that it ran).
fn sampler_cpu_s() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let samplers =
        tasks.filter(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "sampler\n"));
    let ns = |task: &fs::DirEntry| -> Option<f64> {
        fs::read_to_string(task.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    samplers.filter_map(|task| ns(&task)).sum::<f64>() / 1e9
}

/// The cost of sampling with `connections` idle connections, as a share of a core. It runs in a separate process, in
/// which no other test has a sampler.
fn cost_of_sampling(connections: usize) -> Option<f64> {
    let broker = Broker::start()?;
    let _streams: Vec<TcpStream> = (0..connections).map(|number| broker.connect(&format!("c{number}"))).collect();
    let sampler = Sampler::start(&[broker.place()], &[broker.port], Workers::default(), true).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let (start, before_s) = (Instant::now(), sampler_cpu_s());
    std::thread::sleep(Duration::from_secs(6));
    let share = (sampler_cpu_s() - before_s) / start.elapsed().as_secs_f64();
    let samples = sampler.finish();
    let last = samples.all()[samples.all().len() - 1].system.unwrap();
    print_single_samples(&broker);
    assert!(last.descriptors.unwrap() as usize >= connections, "{last:?}");
    eprintln!("{connections} connections: sampling takes {:.2} % of a core", share * 100.0);
    Some(share)
}

/// Prints the share of a core for each reading: the first of all sockets, which finds their owners, a later one, and
/// the others.
fn print_single_samples(broker: &Broker) {
    let own = pubmark_systems::meter::OwnMeter::default();
    let mut system = SystemMeter::new(&[broker.place()]);
    let cpu_ms = |name: &str, look: &mut dyn FnMut()| {
        let before = own.read().unwrap().cpu_ns;
        look();
        eprintln!("{name}: {:.2} ms", (own.read().unwrap().cpu_ns - before) as f64 / 1e6);
    };
    cpu_ms("processes and control group", &mut || _ = black_box(system.read()));
    let pids = system.pids();
    let mut sockets = None;
    cpu_ms("sockets, first look", &mut || sockets = Some(SocketMeter::new(&pids, &[]).unwrap()));
    cpu_ms("sockets, second look", &mut || _ = black_box(sockets.as_mut().unwrap().read(&pids, &[std::process::id()])));
    cpu_ms("descriptors", &mut || _ = black_box(system.descriptors()));
    cpu_ms("context switches", &mut || _ = black_box(system.switches()));
    cpu_ms("proportional set", &mut || _ = black_box(system.proportional_bytes()));
}

#[test]
fn sampling_a_thousand_connections_takes_a_hundredth_of_a_core() {
    const ALONE: &str = "PUBMARK_TEST_ALONE";
    if let Ok(connections) = std::env::var(ALONE) {
        let connections: usize = connections.parse().unwrap();
        if let Some(share) = cost_of_sampling(connections) {
            // A build for tests is slower than a release build.
            assert!(share < 0.02, "{share}");
        }
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["sampling_a_thousand_connections_takes_a_hundredth_of_a_core", "--exact", "--nocapture"])
        .env(ALONE, "1000")
        .output()
        .unwrap();
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
