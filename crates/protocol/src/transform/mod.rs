//! The steps of `transform`: what publishers do with bodies before they send them, and subscribers with those that they received.
//!
//! All steps are deterministic: a body that is sent again is made again and is the same. The keys follow from the seed of the run
//! ([`keys::KeyedSteps`]), so every process of it has them; they protect nothing and must not be used elsewhere.

pub mod keys;
mod steps;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pubmark_model::transform::{MOST_STEPS, Step};

use crate::body::{Body, Filled};
use keys::KeyedSteps;
pub use steps::{Corrupt, MessageName, Transformer};

/// What one step did with one body, and its cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCost {
    /// CPU time of the thread that did it, ns.
    pub cpu_ns: u64,
    /// Bytes of the body before it.
    pub bytes_before: u32,
    /// Bytes of the body behind it.
    pub bytes_after: u32,
}

/// By the index of a step: its cost for one body; zeros after the last step.
pub type StepCosts = [StepCost; MOST_STEPS];

/// A body as it is sent.
#[derive(Clone, Copy, Debug)]
pub struct BodySize {
    /// Its bytes.
    pub bytes: u32,
    /// The costs of its steps.
    pub costs: StepCosts,
}

/// What the publishers of a shard share: buffers, and the body that was made last. Adapters copy that when the engine has handed it over;
/// an adapter that encodes later has it made again.
#[derive(Debug, Default)]
pub struct ShardTransformer(Mutex<Last>);

#[derive(Default)]
struct Last {
    transformer: Transformer,
    of: Option<Filled>,
    body: Vec<u8>,
    costs: StepCosts,
}

impl fmt::Debug for Last {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Last").field("of", &self.of).finish_non_exhaustive()
    }
}

/// The bodies of a publisher whose group has steps.
#[derive(Debug)]
pub struct TransformedBody {
    plain: Body,
    steps: KeyedSteps,
    shard: Arc<ShardTransformer>,
}

impl TransformedBody {
    /// Of a publisher, whose bodies are `plain` before the steps.
    pub fn new(
        plain: Body,
        steps: &[Step],
        seed: u64,
        publisher: u32,
        shard: Arc<ShardTransformer>,
    ) -> TransformedBody {
        TransformedBody { plain, steps: KeyedSteps::of(steps, seed, publisher), shard }
    }

    /// Makes the body of a message, unless it is the one that was made last.
    pub fn make(&self, message: &Filled) -> BodySize {
        self.with_last_body(message, |last| BodySize { bytes: last.body.len() as u32, costs: last.costs })
    }

    /// Appends `bytes` bytes of the body, from its byte `skipped` on; zeros behind its end.
    pub(crate) fn append(&self, message: &Filled, skipped: usize, bytes: usize, out: &mut Vec<u8>) {
        self.with_last_body(message, |last| {
            let end = out.len() + bytes;
            let rest = last.body.get(skipped..).unwrap_or_default();
            out.extend_from_slice(&rest[..bytes.min(rest.len())]);
            out.resize(end, 0);
        });
    }

    fn with_last_body<T>(&self, message: &Filled, read: impl FnOnce(&Last) -> T) -> T {
        let mut last = self.shard.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.of != Some(*message) {
            let Last { transformer, of, body, costs } = &mut *last;
            body.clear();
            self.plain.append(message, 0, message.plain_bytes as usize, body);
            let name = MessageName { publisher: message.publisher, sequence: message.sequence };
            *costs = transformer.apply(&self.steps, name, body);
            *of = Some(*message);
        }
        read(&last)
    }
}

#[cfg(test)]
mod tests {
    use pubmark_model::template::BodyDraw;
    use pubmark_model::transform::{Cipher, Compression, Signature};

    use super::*;

    fn message(sequence: u32) -> Filled {
        Filled { publisher: 3, sequence, due_ns: 5, draw: BodyDraw::default(), wall_ahead_ns: 0, plain_bytes: 1_000 }
    }

    #[test]
    fn a_body_can_be_made_again_in_parts_after_another_was_made() {
        let steps =
            [Step::Compress(Compression::Zstd(3)), Step::Encrypt(Cipher::Aes256Gcm), Step::Sign(Signature::Ed25519)];
        let text: Arc<[u8]> = b"a text that is shorter than itself once it was compressed, ".repeat(20).into();
        let body = TransformedBody::new(Body::Document(text), &steps, 1, 3, Arc::default());
        let made = body.make(&message(7));
        assert!(made.bytes < 1_000, "{made:?}");
        let whole = |sequence| {
            let mut whole = vec![];
            body.append(&message(sequence), 0, made.bytes as usize, &mut whole);
            whole
        };
        let first = whole(7);
        assert_ne!(whole(8), first, "another nonce");
        let mut parts = vec![];
        for part in [0..100, 100..101, 101..made.bytes as usize + 10] {
            body.append(&message(7), part.start, part.len(), &mut parts);
        }
        assert_eq!((&parts[..first.len()], &parts[first.len()..]), (&first[..], &[0; 10][..]));
        let costs = body.make(&message(7)).costs.map(|cost| (cost.bytes_before, cost.bytes_after));
        assert_eq!((costs[0].0, costs[1], costs[2].1), (1_000, (costs[0].1, costs[0].1 + 28), made.bytes));
        assert_eq!(costs[2].0 + 64, costs[2].1);
    }
}
