//! A ZeroMQ proxy: libzmq's own, in a Python program of a few lines; and other programs that use the same library.

use std::path::PathBuf;
use std::process::Command;

use crate::processes::{Kind, ListenerSpec, Processes, installed};
use crate::server::{LOGIN, Limits, Listener, Missing};

/// A running proxy.
pub type ZeroMq = Processes<ZeroMqProxy>;

/// The kind.
pub enum ZeroMqProxy {}

/// XSUB for publishers, XPUB for subscribers: proxy.py XSUB-PORT XPUB-PORT [USER PASSWORD]. Queues are not limited: a
/// subscriber that is slow on purpose must lose nothing.
const PROXY: &str = "
import sys, zmq
from zmq.auth.thread import ThreadAuthenticator

context = zmq.Context()
if len(sys.argv) > 3:
    authenticator = ThreadAuthenticator(context)
    authenticator.start()
    authenticator.configure_plain(domain='*', passwords={sys.argv[3]: sys.argv[4]})
sides = []
for kind, port in ((zmq.XSUB, sys.argv[1]), (zmq.XPUB, sys.argv[2])):
    socket = context.socket(kind)
    socket.rcvhwm = socket.sndhwm = 0
    socket.plain_server = len(sys.argv) > 3
    socket.bind('tcp://127.0.0.1:' + port)
    sides.append(socket)
zmq.proxy(*sides)
";

/// A Python interpreter with pyzmq: Debian's with its `python3-zmq`, or that of `pubmark install zeromq`.
pub fn python() -> Result<PathBuf, Missing> {
    let candidates = [PathBuf::from("/usr/bin/python3"), installed("zeromq").join("bin/python")];
    let has_it =
        |python: &PathBuf| Command::new(python).args(["-c", "import zmq"]).output().is_ok_and(|it| it.status.success());
    let missing = || Missing("there is no Python with pyzmq (`apt-get install python3-zmq`)".to_owned());
    candidates.into_iter().find(has_it).ok_or_else(missing)
}

impl Kind for ZeroMqProxy {
    const NAME: &'static str = "zeromq-proxy";
    const SCHEMES: [&'static str; 2] = ["zmq", "zmq"];
    const LISTENERS: &'static [Listener] = &[Listener::Plain, Listener::Guarded];
    const SUBSCRIBERS_APART: bool = true;

    fn command(place: &ListenerSpec<'_>) -> Result<Command, Missing> {
        if place.limits == Limits::Small {
            let reason = "a publisher that nobody listens to sends nothing, so nothing of it is too large";
            return Err(Missing(reason.to_owned()));
        }
        let mut command = Command::new(python()?);
        command.arg(place.write("proxy.py", PROXY));
        command.args([place.address.port(), place.subscribers.port()].map(|port| port.to_string()));
        if place.listener == Listener::Guarded {
            command.args([LOGIN.0, LOGIN.1]);
        }
        Ok(command)
    }
}
