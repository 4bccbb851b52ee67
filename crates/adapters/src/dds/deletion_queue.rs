//! Deletes writers on a thread of its own: the library returns from a deletion when all of its threads have let go of the writer,
//! which takes a millisecond or more, and a shard has no time for that.

use std::sync::mpsc::{self, Sender};
use std::thread::{Builder, JoinHandle};

/// Where writers go that are not needed any more. Waits for all deletions when it is dropped.
pub(super) struct DeletionQueue<W> {
    begun: Option<(Sender<Vec<W>>, JoinHandle<()>)>,
}

impl<W> Default for DeletionQueue<W> {
    fn default() -> DeletionQueue<W> {
        DeletionQueue { begun: None }
    }
}

impl<W: Send + 'static> DeletionQueue<W> {
    /// Has these deleted.
    pub(super) fn delete(&mut self, writers: Vec<W>) {
        if writers.is_empty() {
            return;
        }
        if self.begun.is_none() {
            let (sender, writers) = mpsc::channel::<Vec<W>>();
            let thread =
                Builder::new().name("dds-leaving".to_owned()).spawn(move || writers.into_iter().for_each(drop));
            // If no thread can be started they are deleted here, which blocks the shard.
            self.begun = thread.ok().map(|thread| (sender, thread));
        }
        if let Some((sender, _)) = &self.begun {
            // The thread ends after its sender, so it takes them.
            let _ = sender.send(writers);
        }
    }
}

impl<W> Drop for DeletionQueue<W> {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.begun.take() {
            drop(sender);
            // It does nothing that could panic but in the library, and then there is nothing left to delete.
            let _ = thread.join();
        }
    }
}
