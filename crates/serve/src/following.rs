//! State computed from the events of a submission for occasional requests: each line is read once.

use std::sync::{Mutex, PoisonError};

use pubmark_runner::stream::StreamEvent;

use crate::store::{EVENTS_FILE, Store};
use crate::tail::Tail;

/// State that is gathered from the events of one submission at a time, the one that was requested last.
#[derive(Default)]
pub struct Following<Gathered> {
    followed: Mutex<Option<Followed<Gathered>>>,
}

struct Followed<Gathered> {
    id: String,
    tail: Tail,
    gathered: Gathered,
}

impl<Gathered: Clone + Default> Following<Gathered> {
    /// The state gathered so far for a submission. Reads a file, so it must not run on a thread that others wait for.
    pub fn now(&self, store: &Store, id: &str, add: impl Fn(&mut Gathered, StreamEvent)) -> Gathered {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |followed: &Followed<Gathered>| followed.id == id;
        let mut one = followed.take().filter(is_it).unwrap_or_else(|| Followed {
            id: id.to_owned(),
            tail: Tail::of(store.folder(id).join(EVENTS_FILE)),
            gathered: Gathered::default(),
        });
        // A file that cannot be read now is read by the next call.
        let _ = one.tail.each_event(|event| add(&mut one.gathered, event));
        followed.insert(one).gathered.clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn an_event_is_counted_once_and_another_submission_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let write = |id: &str, text: &str| {
            std::fs::create_dir_all(store.folder(id)).unwrap();
            let file = OpenOptions::new().create(true).append(true).open(store.folder(id).join(EVENTS_FILE));
            file.unwrap()
                .write_all(format!("{{\"event\":\"note\",\"t_s\":1.0,\"text\":\"{text}\"}}\n").as_bytes())
                .unwrap();
        };
        let following: Following<Vec<String>> = Following::default();
        let texts = |id: &str| {
            following.now(&store, id, |texts, event| match event {
                StreamEvent::Note { text, .. } => texts.push(text),
                other => panic!("{other:?}"),
            })
        };
        assert!(texts("a").is_empty(), "it has not begun");
        write("a", "one");
        assert_eq!((texts("a"), texts("a")), (vec!["one".to_owned()], vec!["one".to_owned()]));
        write("a", "two");
        write("b", "other");
        assert_eq!(texts("a"), ["one", "two"]);
        assert_eq!(texts("b"), ["other"]);
        assert_eq!(texts("a"), ["one", "two"]);
    }
}
