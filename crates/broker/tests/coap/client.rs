//! A broker in a thread, and clients that send and receive whole datagrams.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use pubmark_broker::coap::{CoapBroker, CoapSettings, CoapStatistics};
use pubmark_wire::coap::{Code, Kind, Message, Times, Writer, decode, encode_empty, encode_path, number};

const PATIENCE: Duration = Duration::from_secs(10);
/// Time within which an unexpected datagram would have arrived.
const SILENCE: Duration = Duration::from_millis(100);

/// A broker that runs; its times are a tenth of the standard's.
pub struct Running {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<CoapStatistics>,
}

impl Running {
    pub fn start(adjust: impl FnOnce(&mut CoapSettings) + Send + 'static) -> Running {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut settings = CoapSettings::new("127.0.0.1:0".parse().unwrap());
            settings.times = Times { acknowledge_ns: 200_000_000, ..Times::STANDARD };
            adjust(&mut settings);
            let mut broker = CoapBroker::bind(settings).unwrap();
            tell.send(broker.local_address().unwrap()).unwrap();
            broker.run(&seen).unwrap();
            broker.statistics()
        });
        Running { address: told.recv().unwrap(), stop, thread }
    }

    pub fn end(self) -> CoapStatistics {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// A received datagram.
#[derive(Clone, Debug)]
pub struct Heard(pub Vec<u8>);

impl Heard {
    pub fn message(&self) -> Message<'_> {
        decode(&self.0).unwrap()
    }

    pub fn code(&self) -> Code {
        self.message().code
    }

    pub fn observe(&self) -> Option<u32> {
        self.message().options.get(number::OBSERVE).and_then(pubmark_wire::coap::uint)
    }
}

/// A client at an address of its own.
pub struct Client {
    socket: UdpSocket,
    message_id: u16,
}

impl Client {
    pub fn of(running: &Running) -> Client {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(running.address).unwrap();
        Client { socket, message_id: 0x100 }
    }

    pub fn say(&self, bytes: &[u8]) {
        self.socket.send(bytes).unwrap();
    }

    pub fn say_empty(&self, kind: Kind, message_id: u16) {
        let mut out = Vec::new();
        encode_empty(kind, message_id, &mut out);
        self.say(&out);
    }

    pub fn hear(&self) -> Heard {
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = [0; 2_048];
        let count = self.socket.recv(&mut bytes).expect("the broker says something");
        Heard(bytes[..count].to_vec())
    }

    pub fn hears_nothing(&self) {
        self.socket.set_read_timeout(Some(SILENCE)).unwrap();
        let heard = self.socket.recv(&mut [0; 2_048]);
        assert!(heard.is_err(), "{heard:?}");
    }

    /// A request's bytes; `options` come after the path, except for Observe.
    pub fn request(
        &mut self,
        kind: Kind,
        code: Code,
        topic: &str,
        options: &[(u16, &[u8])],
        payload: &[u8],
    ) -> Vec<u8> {
        self.message_id += 1;
        let mut out = Vec::new();
        let mut writer = Writer::new(kind, code, self.message_id, b"tok", &mut out);
        let (before, behind): (Vec<_>, Vec<_>) = options.iter().partition(|(number, _)| *number < number::URI_PATH);
        before.iter().for_each(|(number, value)| writer.option(*number, value));
        encode_path(&mut writer, topic);
        behind.iter().for_each(|(number, value)| writer.option(*number, value));
        writer.end(payload);
        out
    }

    /// Sends a confirmable request and returns the response.
    pub fn ask(&mut self, code: Code, topic: &str, options: &[(u16, &[u8])], payload: &[u8]) -> Heard {
        let request = self.request(Kind::Confirmable, code, topic, options, payload);
        self.say(&request);
        let heard = self.hear();
        let message = heard.message();
        assert_eq!((message.kind, message.message_id), (Kind::Acknowledgement, self.message_id));
        assert_eq!(message.token, b"tok");
        heard
    }

    pub fn put(&mut self, topic: &str, payload: &[u8]) -> Code {
        self.ask(Code::PUT, topic, &[], payload).code()
    }

    pub fn observe(&mut self, filter: &str) -> Heard {
        self.ask(Code::GET, filter, &[(number::OBSERVE, &[])], b"")
    }
}
