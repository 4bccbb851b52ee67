//! One body through all steps, and back.

use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};
use pubmark_model::transform::{CIPHER_BYTES, Compression, MOST_STEPS};
use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};
use ring::hmac;
use ring::signature::{ED25519, KeyPair as _, UnparsedPublicKey};
use zstd_safe::{CCtx, DCtx};

use super::keys::{KeyedStep, KeyedSteps};
use super::{StepCost, StepCosts};
use crate::clock;

/// Bytes of an HMAC with SHA-256, and of an Ed25519 signature.
const HMAC_BYTES: usize = 32;
const ED25519_BYTES: usize = 64;

/// The message of a body. Ciphers and signatures cover it, so that a body under the header of another message is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageName {
    /// Number of the publisher in the fleet.
    pub publisher: u32,
    /// Its sequence number.
    pub sequence: u32,
}

impl MessageName {
    fn bytes(self) -> [u8; 8] {
        (u64::from(self.publisher) << 32 | u64::from(self.sequence)).to_le_bytes()
    }
}

/// A body that cannot be undone: it arrived changed, or cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// The step that detected it.
    pub step: usize,
}

/// Applies steps and undoes them, one body after the other. The state of the compressors is made once.
#[derive(Default)]
pub struct Transformer {
    zlib: Option<(u8, Compress)>,
    inflate: Option<Decompress>,
    zstd: Option<CCtx<'static>>,
    unzstd: Option<DCtx<'static>>,
    other: Vec<u8>,
}

impl Transformer {
    /// Puts a body through the steps, in order.
    pub fn apply(&mut self, steps: &KeyedSteps, name: MessageName, body: &mut Vec<u8>) -> StepCosts {
        let mut costs = [StepCost::default(); MOST_STEPS];
        let mut began_ns = clock::thread_cpu_ns();
        for (step, cost) in steps.0.iter().zip(&mut costs) {
            let bytes_before = body.len() as u32;
            self.apply_one(step, name, body);
            let ended_ns = clock::thread_cpu_ns();
            *cost = StepCost { cpu_ns: ended_ns - began_ns, bytes_before, bytes_after: body.len() as u32 };
            began_ns = ended_ns;
        }
        costs
    }

    /// Undoes the steps, in the reverse order. A body that grows beyond `most` bytes at any of them is corrupt.
    ///
    /// # Errors
    /// The body is not what [`Transformer::apply`] made for this message.
    pub fn reverse(
        &mut self,
        steps: &KeyedSteps,
        name: MessageName,
        most: usize,
        body: &mut Vec<u8>,
    ) -> Result<StepCosts, Corrupt> {
        let mut costs = [StepCost::default(); MOST_STEPS];
        let mut began_ns = clock::thread_cpu_ns();
        for (place, step) in steps.0.iter().enumerate().rev() {
            let bytes_before = body.len() as u32;
            self.reverse_one(step, name, most, body).ok_or(Corrupt { step: place })?;
            let ended_ns = clock::thread_cpu_ns();
            costs[place] = StepCost { cpu_ns: ended_ns - began_ns, bytes_before, bytes_after: body.len() as u32 };
            began_ns = ended_ns;
        }
        Ok(costs)
    }

    fn apply_one(&mut self, step: &KeyedStep, name: MessageName, body: &mut Vec<u8>) {
        match step {
            KeyedStep::Compress(Compression::Zlib(level)) => self.compress_zlib(*level, body),
            KeyedStep::Compress(Compression::Zstd(level)) => self.compress_zstd(*level, body),
            KeyedStep::Encrypt(key) => encrypt(key, name, &mut self.other, body),
            KeyedStep::Hmac(key) => return sign(name, body, |text| hmac::sign(key, text)),
            KeyedStep::Ed25519(pair) => return sign(name, body, |text| pair.sign(text)),
        }
        std::mem::swap(&mut self.other, body);
    }

    fn reverse_one(&mut self, step: &KeyedStep, name: MessageName, most: usize, body: &mut Vec<u8>) -> Option<()> {
        match step {
            KeyedStep::Compress(Compression::Zlib(_)) => self.expand_zlib(most, body),
            KeyedStep::Compress(Compression::Zstd(_)) => self.expand_zstd(most, body),
            KeyedStep::Encrypt(key) => decrypt(key, name, body),
            KeyedStep::Hmac(key) => verify::<HMAC_BYTES>(name, body, |text, tag| hmac::verify(key, text, tag).is_ok()),
            KeyedStep::Ed25519(pair) => verify::<ED25519_BYTES>(name, body, |text, signature| {
                UnparsedPublicKey::new(&ED25519, pair.public_key().as_ref()).verify(text, signature).is_ok()
            }),
        }
    }

    fn compress_zlib(&mut self, level: u8, body: &[u8]) {
        if self.zlib.as_ref().is_none_or(|(known, _)| *known != level) {
            self.zlib = Some((level, Compress::new(flate2::Compression::new(level.into()), true)));
        }
        let Some((_, zlib)) = &mut self.zlib else { return };
        zlib.reset();
        self.other.clear();
        // Stored blocks add 5 B for each 64 KB; a loop, as the library promises no bound.
        self.other.reserve(body.len() + body.len() / 1_000 + 64);
        loop {
            let from = zlib.total_in() as usize;
            let status = zlib.compress_vec(&body[from..], &mut self.other, FlushCompress::Finish);
            match status.expect("a stream that was reset takes any bytes") {
                Status::StreamEnd => return,
                Status::Ok | Status::BufError => self.other.reserve(body.len().max(64)),
            }
        }
    }

    fn expand_zlib(&mut self, most: usize, body: &mut Vec<u8>) -> Option<()> {
        let inflate = self.inflate.get_or_insert_with(|| Decompress::new(true));
        inflate.reset(true);
        self.other.clear();
        self.other.reserve(most);
        let status = inflate.decompress_vec(body, &mut self.other, FlushDecompress::Finish).ok()?;
        let is_whole = status == Status::StreamEnd && inflate.total_in() == body.len() as u64;
        std::mem::swap(&mut self.other, body);
        (is_whole && body.len() <= most).then_some(())
    }

    fn compress_zstd(&mut self, level: u8, body: &[u8]) {
        self.other.clear();
        self.other.reserve(zstd_safe::compress_bound(body.len()));
        let zstd = self.zstd.get_or_insert_with(CCtx::create);
        // The buffer is large enough, so that only memory can be missing, as for every allocation.
        zstd.compress(&mut self.other, body, level.into()).expect("memory for zstd");
    }

    fn expand_zstd(&mut self, most: usize, body: &mut Vec<u8>) -> Option<()> {
        // For zstd, no frame at all is a body of no bytes. A publisher sends at least one frame (RFC 8878 §3).
        if body.is_empty() {
            return None;
        }
        self.other.clear();
        self.other.reserve(most);
        let unzstd = self.unzstd.get_or_insert_with(DCtx::create);
        unzstd.decompress(&mut self.other, body).ok()?;
        std::mem::swap(&mut self.other, body);
        (body.len() <= most).then_some(())
    }
}

/// Publisher and sequence number: no nonce is used twice with the key of a device.
fn nonce(name: MessageName) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    nonce[..8].copy_from_slice(&name.bytes());
    nonce
}

/// Nonce, encrypted text and tag, into `out`.
fn encrypt(key: &LessSafeKey, name: MessageName, out: &mut Vec<u8>, body: &[u8]) {
    let nonce = nonce(name);
    out.clear();
    out.reserve(body.len() + CIPHER_BYTES as usize);
    out.extend_from_slice(&nonce);
    out.extend_from_slice(body);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(name.bytes()), &mut out[NONCE_LEN..]);
    out.extend_from_slice(tag.expect("a body is shorter than 64 GiB (RFC 5116 §5.1)").as_ref());
}

fn decrypt(key: &LessSafeKey, name: MessageName, body: &mut Vec<u8>) -> Option<()> {
    let nonce = Nonce::try_assume_unique_for_key(body.get(..NONCE_LEN)?).ok()?;
    let plain = key.open_within(nonce, Aad::from(name.bytes()), &mut body[NONCE_LEN..], 0..).ok()?.len();
    body.copy_within(NONCE_LEN..NONCE_LEN + plain, 0);
    body.truncate(plain);
    Some(())
}

/// Appends a signature of the body and its message name.
fn sign<Signature: AsRef<[u8]>>(name: MessageName, body: &mut Vec<u8>, sign: impl FnOnce(&[u8]) -> Signature) {
    let plain = body.len();
    body.extend_from_slice(&name.bytes());
    let signature = sign(body);
    body.truncate(plain);
    body.extend_from_slice(signature.as_ref());
}

/// Removes the signature at the end of a body, `BYTES` long, and verifies it; `None` if it is wrong or missing.
fn verify<const BYTES: usize>(
    name: MessageName,
    body: &mut Vec<u8>,
    is_right: impl FnOnce(&[u8], &[u8]) -> bool,
) -> Option<()> {
    let plain = body.len().checked_sub(BYTES)?;
    let mut signature = [0; BYTES];
    signature.copy_from_slice(&body[plain..]);
    body.truncate(plain);
    body.extend_from_slice(&name.bytes());
    let is_right = is_right(body, &signature);
    body.truncate(plain);
    is_right.then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pubmark_model::transform::{Cipher, Signature, Step};

    use super::*;

    const NAME: MessageName = MessageName { publisher: 3, sequence: 7 };

    const STEPS: [Step; 7] = [
        Step::Compress(Compression::Zlib(6)),
        Step::Compress(Compression::Zstd(3)),
        Step::Encrypt(Cipher::Aes128Gcm),
        Step::Encrypt(Cipher::Aes256Gcm),
        Step::Encrypt(Cipher::ChaCha20Poly1305),
        Step::Sign(Signature::HmacSha256),
        Step::Sign(Signature::Ed25519),
    ];

    fn any_steps() -> impl Strategy<Value = Vec<Step>> {
        let of_each_kind = (0..2usize, 2..5usize, 5..7usize);
        (of_each_kind, 1..=3usize).prop_flat_map(|((compress, encrypt, sign), count)| {
            let steps = vec![STEPS[compress], STEPS[encrypt], STEPS[sign]];
            Just(steps).prop_shuffle().prop_map(move |steps| steps[..count].to_vec())
        })
    }

    proptest! {
        #[test]
        fn every_step_is_reversed(
            steps in any_steps(), body in proptest::collection::vec(0..4u8, 0..3_000), seed in any::<u64>(),
        ) {
            let keyed = KeyedSteps::of(&steps, seed, NAME.publisher);
            let (mut publisher, mut subscriber) = (Transformer::default(), Transformer::default());
            // Twice: nothing of one body is left in the next.
            for body in [&body[..], &body[..body.len() / 2]] {
                let mut sent = body.to_vec();
                let costs = publisher.apply(&keyed, NAME, &mut sent);
                prop_assert_eq!(costs[0].bytes_before as usize, body.len());
                prop_assert_eq!(costs[steps.len() - 1].bytes_after as usize, sent.len());
                let mut received = sent.clone();
                // Between the steps it may be larger than in the end: a signature under a compression.
                let most = body.len() + 28 + 64;
                let reversed = subscriber.reverse(&keyed, NAME, most, &mut received);
                prop_assert_eq!(&received[..], body);
                let reversed = reversed.expect("it was not changed");
                prop_assert!((0..steps.len()).all(|step| reversed[step].bytes_after == costs[step].bytes_before));
            }
        }

        #[test]
        fn nothing_that_arrives_changed_is_accepted_or_panics(
            steps in any_steps(), at in any::<proptest::sample::Index>(), bit in 0..8u8, cut in any::<bool>(),
        ) {
            let keyed = KeyedSteps::of(&steps, 1, NAME.publisher);
            let body: Vec<u8> = (0..=255).collect();
            let mut sent = body.clone();
            Transformer::default().apply(&keyed, NAME, &mut sent);
            let mut received = sent.clone();
            match cut {
                true => received.truncate(at.index(sent.len())),
                false => received[at.index(sent.len())] ^= 1 << bit,
            }
            let reversed = Transformer::default().reverse(&keyed, NAME, body.len() * 2, &mut received);
            let compresses = |step: &Step| matches!(step, Step::Compress(_));
            // Some bits of a compressed stream do not matter: then the output is still right. zstd alone has no checksum.
            let is_the_same = !cut && steps.last().is_some_and(compresses) && (received == body || steps.len() == 1);
            prop_assert!(reversed.is_err() || is_the_same);
        }
    }

    #[test]
    fn a_body_that_was_cut_to_nothing_is_corrupt() {
        for step in STEPS {
            let reversed =
                Transformer::default().reverse(&KeyedSteps::of(&[step], 1, NAME.publisher), NAME, 100, &mut vec![]);
            assert!(reversed.is_err(), "{step:?}");
        }
    }

    #[test]
    fn a_body_of_another_message_or_device_is_corrupt() {
        for step in &STEPS[2..] {
            let keyed = |seed, publisher| KeyedSteps::of(&[*step], seed, publisher);
            let mut sent = b"a body".to_vec();
            let mut transformer = Transformer::default();
            transformer.apply(&keyed(1, 3), NAME, &mut sent);
            let mut reverse = |keyed: &KeyedSteps, name| transformer.reverse(keyed, name, 100, &mut sent.clone());
            assert!(reverse(&keyed(1, 3), NAME).is_ok());
            let other = MessageName { sequence: 8, ..NAME };
            assert_eq!(reverse(&keyed(1, 3), other), Err(Corrupt { step: 0 }), "{step}: other message");
            assert_eq!(reverse(&keyed(1, 4), NAME), Err(Corrupt { step: 0 }), "{step}: other device");
            assert_eq!(reverse(&keyed(2, 3), NAME), Err(Corrupt { step: 0 }), "{step}: other seed");
        }
    }

    #[test]
    fn a_body_that_expands_without_end_is_corrupt() {
        for step in &STEPS[..2] {
            let keyed = KeyedSteps::of(&[*step], 1, 3);
            let mut bomb = vec![0; 10 << 20];
            let mut transformer = Transformer::default();
            transformer.apply(&keyed, NAME, &mut bomb);
            assert!(bomb.len() < 20_000, "{}", bomb.len());
            assert_eq!(transformer.reverse(&keyed, NAME, 4_096, &mut bomb), Err(Corrupt { step: 0 }));
        }
    }
}
