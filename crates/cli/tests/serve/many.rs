//! A library of ten thousand results: the duration of a list, and that other requests do not wait for it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::call::{self, Events, Response};
use crate::results::save;
use crate::server::{LONG, Server, folder, wait_for};

/// Results of a large library.
const MANY: usize = 10_000;
/// Longest CPU time of the first list of a server that finds in its file what another one has read.
const WARM_LIMIT: Duration = Duration::from_secs(2);
/// Longest CPU time of a list whose records the server has read before.
const AGAIN_LIMIT: Duration = Duration::from_secs(2);
/// Longest CPU time of three first lists at once, for which every record is read.
const COLD_LIMIT: Duration = Duration::from_secs(20);
/// Longest time between two events of a run under way, which come once a second, whatever is listed meanwhile.
const EVENT_LIMIT: Duration = Duration::from_secs(4);

/// A response, and the CPU time that the server has taken meanwhile: the time by the clock depends on what else the machine
/// has to do.
fn timed(server: &Server, path: &str) -> (Duration, Response) {
    let before = server.cpu();
    let response = call::request(server.port, "GET", path, Some(&server.token), "");
    assert_eq!(response.status, 200, "{path}");
    (server.cpu() - before, response)
}

/// A server that is killed during its first list has noted what it had read. Leaves nothing for the next one.
fn what_was_read_is_not_lost(place: &Path) {
    let server = Server::start(place, &[]);
    let index = server.runs().join(".serve/headlines.jsonl");
    let (port, token) = (server.port, server.token.clone());
    let listing = std::thread::spawn(move || {
        call::raw(
            port,
            format!("GET /runs HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\r\n").as_bytes(),
        )
    });
    wait_for("what was read to be noted", || index.is_file().then_some(()));
    server.kill();
    listing.join().unwrap();
    let lines = fs::read_to_string(&index).unwrap().lines().count();
    assert!(lines > 100 && lines < MANY, "{lines} lines when it was killed");
    fs::remove_file(index).unwrap();
}

#[test]
fn a_list_of_ten_thousand_is_fast_and_does_not_block_other_requests() {
    let place = folder();
    let runs = place.path().join("runs");
    save(&runs, "20260101-000000-first", |_| ());
    let record = runs.join("20260101-000000-first/record.json");
    for number in 1..MANY {
        let folder = runs.join(format!("20260102-{number:06}-made"));
        fs::create_dir(&folder).unwrap();
        // One file under all names: the disk need not hold gigabytes.
        fs::hard_link(&record, folder.join("record.json")).unwrap();
    }
    what_was_read_is_not_lost(place.path());
    let server = Server::start(place.path(), &[]);
    let id = server.submit(LONG);
    server.wait_for_load(&id);
    let cold = std::thread::scope(|scope| {
        let lists = [(); 3].map(|()| scope.spawn(|| timed(&server, "/runs").0));
        let mut longest = Duration::ZERO;
        let mut before = Instant::now();
        let mut events = Events::of(server.port, &server.token, &id);
        while lists.iter().any(|list| !list.is_finished()) {
            events.next().expect("the run goes on");
            longest = longest.max(before.elapsed());
            before = Instant::now();
        }
        assert!(longest < EVENT_LIMIT, "an event came after {longest:?}");
        lists.map(|list| list.join().unwrap()).into_iter().max().unwrap()
    });
    server.delete(&id).of(200);
    server.wait(&id, &["cancelled"]);
    let (again, page) = timed(&server, "/runs?sort=p99&offset=9000");
    assert_eq!(page.json()["total"].as_u64().unwrap(), MANY as u64 + 1);
    let (part, _) = timed(&server, "/?filter=smart-home&sort=load&reverse=true");
    server.stop();
    let server = Server::start(place.path(), &[]);
    let (warm, page) = timed(&server, "/runs?sort=oldest");
    assert_eq!(page.json()["runs"][0]["devices"].as_u64(), page.json()["runs"][1]["devices"].as_u64());
    let index = fs::metadata(runs.join(".serve/headlines.jsonl")).unwrap().len();
    eprintln!(
        "a list of {MANY}: first {cold:?}, again {again:?}, page {part:?}; first after a restart {warm:?}, with a file of {index} B"
    );
    assert!(cold < COLD_LIMIT, "{cold:?}");
    assert!(again < AGAIN_LIMIT && part < AGAIN_LIMIT, "{again:?}, {part:?}");
    assert!(warm < WARM_LIMIT, "{warm:?}");
}
