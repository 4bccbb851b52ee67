//! A broker on a thread of its own for the length of a test.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use pubmark_broker::{Broker, Settings, Statistics};

pub struct Server {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Statistics>>,
}

impl Server {
    pub fn start() -> Server {
        Server::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Settings)) -> Server {
        let mut settings = Settings::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        change(&mut settings);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut broker = Broker::bind(settings).unwrap();
            tell.send(broker.local_address().unwrap()).unwrap();
            broker.run(&stopped).unwrap();
            broker.statistics()
        });
        Server { address: told.recv().unwrap(), stop, thread: Some(thread) }
    }

    pub fn port(&self) -> String {
        self.address.port().to_string()
    }

    /// Stops the broker and returns its counters.
    pub fn finish(mut self) -> Statistics {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
