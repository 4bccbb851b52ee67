//! The byte stream between the driver of a worker and the worker's node.

use std::os::unix::net::UnixStream;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::Receiver;

use crate::lanes::Lanes;
use crate::messages::{CoordinatorMessage, PIECE_BYTES, Piece, Run, ToNode};

/// Most pieces that wait for the driver.
pub(super) const PIECES: usize = 64;

/// Forwards in both directions until each end has closed. If the driver closes its end, the worker ends.
pub(super) async fn carry(driver: UnixStream, number: u32, lanes: Lanes<ToNode>, mut for_driver: Receiver<Vec<u8>>) {
    let Ok(driver) = tokio::net::UnixStream::from_std(driver) else { return };
    let (mut from_driver, mut to_driver) = driver.into_split();
    let forth = async move {
        let mut buffer = vec![0; PIECE_BYTES];
        // An error means the same as the end of the stream: the driver has closed its end.
        while let Ok(length @ 1..) = from_driver.read(&mut buffer).await {
            let piece = Piece { number, bytes: buffer[..length].to_vec() };
            if !lanes.pass(ToNode { message: Some(CoordinatorMessage::Piece(piece)) }).await {
                return;
            }
        }
        lanes.pass(ToNode { message: Some(CoordinatorMessage::End(Run { number })) }).await;
    };
    let back = async move {
        while let Some(bytes) = for_driver.recv().await {
            if to_driver.write_all(&bytes).await.is_err() {
                return;
            }
        }
        // Dropping our half shuts the socket down: the driver reads the end of the stream.
    };
    tokio::join!(forth, back);
}
