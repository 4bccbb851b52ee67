//! A discard sink in its own process: accepts MQTT connections, sends CONNACK, and discards all further bytes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// CONNACK of MQTT 5.0: no session, success, no properties.
const ACCEPT: [u8; 5] = [0x20, 3, 0, 0, 0];

/// Listens on a free port below the ephemeral range, prints it, and serves until standard input ends.
pub fn serve() -> Result<(), String> {
    let listener = (21_000..29_000)
        .find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok())
        .ok_or("no free port between 21000 and 29000")?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    crate::out::line(&address.to_string());
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::Builder::new().stack_size(160 * 1024).spawn(move || discard(connection)).ok();
        }
    });
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).map_err(|error| error.to_string())?;
    Ok(())
}

fn discard(mut connection: TcpStream) -> Option<()> {
    let mut buffer = vec![0; 128 * 1024];
    // The first packet is a CONNECT; bytes that arrive with it are discarded, too.
    if connection.read(&mut buffer).ok()? == 0 {
        return None;
    }
    connection.write_all(&ACCEPT).ok()?;
    while connection.read(&mut buffer).ok()? > 0 {}
    Some(())
}
