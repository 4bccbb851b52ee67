//! The contents of a run's payloads.

use std::sync::Arc;

use pubmark_model::fleet::Device;
use pubmark_model::payload;
use pubmark_model::random::Stream;
use pubmark_model::workload::DeviceGroup;
use pubmark_protocol::body::Body;
use pubmark_protocol::transform::{ShardTransformer, TransformedBody};

/// Size of the pool of bytes that payloads are taken from: large enough that a message of usual size contains no part
/// of the pool twice.
const POOL_BYTES: usize = 1 << 20;

/// Number of words in text payloads: about 64 KB.
const TEXT_WORDS: u64 = 13_000;

/// Numbers of random streams of this run that no device uses.
mod purpose {
    pub const BODY: u64 = 0x0b0d;
    pub const TEXT: u64 = 0x07e7;
}

/// Random bytes.
pub fn random_pool(seed: u64) -> Arc<[u8]> {
    let draws = Stream::new(seed, purpose::BODY);
    (0..POOL_BYTES as u64 / 8).flat_map(|index| draws.bits(index).to_le_bytes()).collect()
}

/// Printable text: words in a seeded order.
fn text_pool(seed: u64) -> Arc<[u8]> {
    const WORDS: [&str; 16] = [
        "sensor", "reads", "a", "value", "of", "the", "room", "and", "sends", "it", "to", "every", "listener", "on",
        "time", "again",
    ];
    let draws = Stream::new(seed, purpose::TEXT);
    let words = (0..TEXT_WORDS).map(|index| WORDS[(draws.bits(index) % WORDS.len() as u64) as usize]);
    words.flat_map(|word| word.bytes().chain([b' '])).collect()
}

/// The payload bodies of all groups.
pub struct Bodies {
    seed: u64,
    /// The text of text payloads.
    text: Arc<[u8]>,
}

impl Bodies {
    /// The bodies of a run.
    pub fn new(seed: u64) -> Bodies {
        Bodies { seed, text: text_pool(seed) }
    }

    /// A device's body before any steps; `None` for the random pool, which every shard uses by default.
    pub fn plain(&self, body: &payload::Body, device: &Device) -> Option<Body> {
        match body {
            payload::Body::Random => None,
            payload::Body::Text => Some(Body::Pool(Arc::clone(&self.text))),
            payload::Body::Json(document) => Some(Body::Document(Arc::clone(document).into())),
            payload::Body::Template(template) => {
                Some(Body::Template { template: Arc::clone(template), device: device.name().into() })
            }
        }
    }

    /// A device's body after the steps of its group; `None` if the group has no steps. `pool` is the shard's random
    /// pool.
    pub fn transformed(
        &self,
        group: &DeviceGroup,
        device: &Device,
        pool: &Arc<[u8]>,
        shard: &Arc<ShardTransformer>,
    ) -> Option<Arc<TransformedBody>> {
        (!group.transform.is_empty()).then(|| {
            let plain = self.plain(&group.body, device).unwrap_or_else(|| Body::Pool(Arc::clone(pool)));
            Arc::new(TransformedBody::new(plain, &group.transform, self.seed, device.publisher, Arc::clone(shard)))
        })
    }
}
