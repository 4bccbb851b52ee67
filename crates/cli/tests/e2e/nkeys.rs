//! NKeys and tokens of users against a real NATS server.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use pubmark_conformance::ports;
use pubmark_conformance::processes::{find, installed};
use pubmark_testing::assert_count_eq;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::secrets::assert_nowhere;
use crate::support::books::{assert_closed, count};
use crate::support::place::Place;
use crate::support::processes::wait_for;

const START: Duration = Duration::from_secs(10);
/// Prefix bytes of encoded keys, by the kind of their owner.
const OPERATOR: u8 = 14 << 3;
const ACCOUNT: u8 = 0;
const USER: u8 = 20 << 3;

/// A running server; killed when dropped.
struct Nats {
    process: Child,
    _folder: TempDir,
    port: u16,
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Nats {
    /// Starts a server with these settings. `None`, with a message, if it is not installed.
    fn start(settings: &str) -> Option<Nats> {
        let Some(program) = find("nats-server", &[installed("nats").join("bin")]) else {
            pubmark_testing::skip("nats-server is not installed (`pubmark install nats`)");
            return None;
        };
        let folder = TempDir::with_prefix("pubmark-e2e-nats-").unwrap();
        let port = ports::free().port();
        let file = folder.path().join("nats.conf");
        std::fs::write(&file, format!("listen: \"127.0.0.1:{port}\"\n{settings}\n")).unwrap();
        let mut command = Command::new(program);
        command.arg("-c").arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Nats { process: command.spawn().unwrap(), _folder: folder, port };
        wait_for("NATS", START, || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(server)
    }
}

/// A key in NATS's encoding.
struct Key {
    seed: [u8; 32],
    pair: Ed25519KeyPair,
    kind: u8,
}

fn with_sum(mut bytes: Vec<u8>) -> String {
    let sum = bytes.iter().fold(0_u16, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 })
    });
    bytes.extend(sum.to_le_bytes());
    BASE32_NOPAD.encode(&bytes)
}

impl Key {
    fn new(kind: u8, number: u8) -> Key {
        let seed = [number; 32];
        Key { seed, pair: Ed25519KeyPair::from_seed_unchecked(&seed).unwrap(), kind }
    }

    fn seed(&self) -> String {
        let kinds = [18 << 3 | self.kind >> 5, (self.kind & 31) << 3];
        with_sum([&kinds[..], &self.seed].concat())
    }

    fn public(&self) -> String {
        with_sum([&[self.kind][..], self.pair.public_key().as_ref()].concat())
    }

    /// A token of NATS (<https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/jwt>).
    fn token(&self, subject: &Key, kind: &str) -> String {
        self.token_until(subject, kind, None)
    }

    /// The same that expires, in seconds of the Unix epoch.
    fn token_until(&self, subject: &Key, kind: &str, expires_s: Option<u64>) -> String {
        let mut claims = json!({
            "jti": format!("{kind}-of-the-test"),
            "iat": 1_700_000_000,
            "iss": self.public(),
            "name": kind,
            "sub": subject.public(),
            "nats": match kind {
                "account" => json!({
                    "limits": {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1},
                    "type": kind, "version": 2,
                }),
                "user" => json!({"subs": -1, "data": -1, "payload": -1, "type": kind, "version": 2}),
                _ => json!({"type": kind, "version": 2}),
            },
        });
        if let Some(expires_s) = expires_s {
            claims["exp"] = expires_s.into();
        }
        let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let signed = format!("{}.{}", part(&json!({"typ": "JWT", "alg": "ed25519-nkey"})), part(&claims));
        let signature = BASE64URL_NOPAD.encode(self.pair.sign(signed.as_bytes()).as_ref());
        format!("{signed}.{signature}")
    }
}

const WORKLOAD: &str = "name: known
devices:
  - {name: pump, count: 3, every: 100ms, payload: 60B, topic: \"known/{device}\", credentials: {file: pumps.csv}}
subscribers:
  - {name: everything, filters: [\"known/#\"], credentials: {file: reader.csv}}
";

fn run(place: &Place, server: &Nats) -> Value {
    let endpoint = format!("nats://127.0.0.1:{}", server.port);
    place.record(&["known.yaml", "--endpoint", &endpoint, "--duration", "1s", "--warmup", "0s"])
}

#[test]
fn each_device_signs_with_its_nkey_and_another_one_is_refused() {
    let users: Vec<Key> = (1..=4).map(|number| Key::new(USER, number)).collect();
    let known: Vec<String> = users.iter().map(|user| format!("{{nkey: {}}}", user.public())).collect();
    let Some(server) = Nats::start(&format!("authorization: {{users: [{}]}}", known.join(", "))) else { return };
    let place = Place::new();
    place.write("known.yaml", WORKLOAD);
    let rows = |users: &[&Key]| users.iter().fold("nkey\n".to_owned(), |text, user| text + &user.seed() + "\n");
    place.write("pumps.csv", rows(&[&users[0], &users[1], &users[2]]));
    place.write("reader.csv", rows(&[&users[3]]));
    let record = run(&place, &server);
    assert_closed(&record);
    assert_count_eq!((count(&record, "delivered"), count(&record, "lost")), (30, 0), "{}", record["delivery"]);
    let seeds: Vec<String> = users.iter().map(Key::seed).collect();
    assert_nowhere(&place.path().join("runs"), &seeds);
    let stranger = Key::new(USER, 9);
    place.write("pumps.csv", rows(&[&users[0], &stranger, &users[2]]));
    let record = run(&place, &server);
    assert!(record["connections"]["auth_failed"].as_u64().unwrap() > 0, "{}", record["connections"]);
    assert_nowhere(&place.path().join("runs"), &[&seeds[..], &[stranger.seed()]].concat());
    // Over a protocol without NKeys, and with a letter too many.
    let refused = place.call(&["run", "./known.yaml", "--system", "mosquitto", "--dry-run"]);
    assert!(refused.errors.contains("logs in with NKeys, which NATS alone has"), "{refused:?}");
    place.write("pumps.csv", format!("nkey\n{}A\nx\ny\n", users[0].seed()));
    let refused = place.call(&["run", "./known.yaml", "--endpoint", "nats://127.0.0.1:4222", "--dry-run"]);
    assert_eq!(refused.code(), 2, "{refused:?}");
    let words = refused.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("pumps.csv:2: what stands under `nkey` cannot be used"), "{words}");
    assert!(!words.contains(&users[0].seed()), "{words}");
}

/// A server that accepts tokens of users of this account.
fn with_account() -> Option<(Nats, Key)> {
    let (operator, account) = (Key::new(OPERATOR, 20), Key::new(ACCOUNT, 21));
    let settings = format!(
        "operator: {}\nresolver: MEMORY\nresolver_preload: {{{}: {}}}\n",
        operator.token(&operator, "operator"),
        account.public(),
        operator.token(&account, "account")
    );
    Some((Nats::start(&settings)?, account))
}

/// Tokens of two of three devices expire during the run: the server closes these connections, and refuses them from
/// then on.
#[test]
fn a_token_that_expires_in_the_middle_ends_its_connection_and_is_refused_from_then_on() {
    let Some((server, account)) = with_account() else { return };
    let place = Place::new();
    place.write("known.yaml", WORKLOAD);
    let now_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    // Starting and connecting take a second or two on a busy machine; the window continues for six.
    let row = |number: u8, expires_s: Option<u64>| {
        let user = Key::new(USER, number);
        format!("{},{}\n", user.seed(), account.token_until(&user, "user", expires_s))
    };
    let soon = Some(now_s + 4);
    place.write("pumps.csv", format!("nkey,token\n{}{}{}", row(1, soon), row(2, soon), row(3, Some(now_s + 3_600))));
    place.write("reader.csv", format!("nkey,token\n{}", row(4, None)));
    let endpoint = format!("nats://127.0.0.1:{}", server.port);
    let record = place.record(&["known.yaml", "--endpoint", &endpoint, "--duration", "6s", "--warmup", "0s"]);
    assert_closed(&record);
    let connections = &record["connections"];
    // Within the second of expiry the server may accept a token once more, and closes that connection at once.
    let ended = connections["log_in_ended"].as_u64().unwrap();
    assert!(ended >= 2, "{connections}");
    assert_count_eq!(connections["dropped"], ended, "{connections}");
    assert!(connections["auth_failed"].as_u64().unwrap() >= 2, "they try again with the same token: {connections}");
    let causes = connections["causes"].to_string();
    assert!(causes.contains("credentials no longer valid: User Authentication Expired"), "{causes}");
    assert!(causes.contains("not authorized: "), "{causes}");
    assert!(count(&record, "skipped_disconnected") > 0, "{}", record["delivery"]);
    assert!(count(&record, "delivered") >= 60, "the third device is not disturbed: {}", record["delivery"]);
    let warnings = record["verdict"]["warnings"].to_string();
    assert!(warnings.contains("whose credentials had expired"), "{warnings}");
}

#[test]
fn the_token_of_a_user_goes_beside_its_nkey() {
    let Some((server, account)) = with_account() else { return };
    let place = Place::new();
    place.write("known.yaml", WORKLOAD);
    let secrets = |number: u8| {
        let user = Key::new(USER, number);
        [user.seed(), account.token(&user, "user")]
    };
    let row = |number: u8| {
        let [seed, token] = secrets(number);
        format!("{seed},{token}\n")
    };
    place.write("pumps.csv", format!("nkey,token\n{}{}{}", row(1), row(2), row(3)));
    place.write("reader.csv", format!("nkey,token\n{}", row(4)));
    let record = run(&place, &server);
    assert_closed(&record);
    assert_count_eq!((count(&record, "delivered"), count(&record, "lost")), (30, 0), "{}", record["delivery"]);
    assert_nowhere(&place.path().join("runs"), &[1, 2, 3, 4].map(secrets).concat());
}
