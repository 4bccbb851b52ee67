//! Queues of messages to the other end: short messages are sent before long pieces.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio_stream::Stream;

/// Most short messages in the queue.
const WORDS: usize = 256;
/// Most pieces of tunnels in the queue; after that, senders wait.
const PIECES: usize = 8;

/// The sender's end of both queues.
#[derive(Debug)]
pub(crate) struct Lanes<T> {
    words: Sender<T>,
    pieces: Sender<T>,
}

impl<T> Clone for Lanes<T> {
    fn clone(&self) -> Lanes<T> {
        Lanes { words: self.words.clone(), pieces: self.pieces.clone() }
    }
}

impl<T> Lanes<T> {
    /// Sends a message before all pieces in the queue. False if the other end has disconnected, or is so late that
    /// hundreds of messages wait: its missing heartbeats will show that it is lost.
    pub fn say(&self, word: T) -> bool {
        self.words.try_send(word).is_ok()
    }

    /// Sends a message in its order among pieces, as soon as the queue has space. False if the other end has
    /// disconnected.
    pub async fn pass(&self, piece: T) -> bool {
        self.pieces.send(piece).await.is_ok()
    }
}

/// The receiver's end, in the order in which messages are to be sent. It ends when all senders are dropped.
#[derive(Debug)]
pub(crate) struct Outbound<T> {
    words: Receiver<T>,
    pieces: Receiver<T>,
}

/// Both ends of two new queues.
pub(crate) fn lanes<T>() -> (Lanes<T>, Outbound<T>) {
    let (words, words_end) = mpsc::channel(WORDS);
    let (pieces, pieces_end) = mpsc::channel(PIECES);
    (Lanes { words, pieces }, Outbound { words: words_end, pieces: pieces_end })
}

impl<T> Stream for Outbound<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let words = self.words.poll_recv(context);
        if let Poll::Ready(Some(word)) = words {
            return Poll::Ready(Some(word));
        }
        match (words, self.pieces.poll_recv(context)) {
            (_, Poll::Ready(Some(piece))) => Poll::Ready(Some(piece)),
            (Poll::Ready(None), Poll::Ready(None)) => Poll::Ready(None),
            _ => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_stream::StreamExt;

    #[test]
    fn words_pass_pieces_and_pieces_keep_their_order() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.map_or_else(
            |error| panic!("{error}"),
            |runtime| {
                runtime.block_on(async {
                    let (lanes, mut outbound) = lanes();
                    assert!(lanes.pass("piece 1").await && lanes.pass("piece 2").await && lanes.say("word"));
                    drop(lanes);
                    let mut said = vec![];
                    while let Some(next) = outbound.next().await {
                        said.push(next);
                    }
                    assert_eq!(said, ["word", "piece 1", "piece 2"]);
                });
            },
        );
    }
}
