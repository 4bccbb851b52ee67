//! The one type that is published: the workload's topic, and a payload; `message.idl` has it as IDL.
//!
//! The library writes and reads samples by a small program over the struct's fields (`dds/ddsc/dds_opcodes.h`), which its IDL
//! compiler would write; here it is by hand, without the description for type checks between unequal versions of a type.

use std::ffi::{CStr, c_char};
use std::mem::offset_of;
use std::ptr::{null, null_mut};

use crate::raw::{KeyDescriptor, TopicDescriptor, TypeMeta};

/// Is each topic of the workload an instance of its own?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All samples of a topic are one instance.
    Plain,
    /// The workload's topic is the key.
    Keyed,
}

/// `dds_sequence_octet`.
#[repr(C)]
pub(crate) struct Octets {
    maximum: u32,
    length: u32,
    buffer: *mut u8,
    release: bool,
}

/// The struct in C.
#[repr(C)]
pub(crate) struct RawSample {
    topic: *const c_char,
    payload: Octets,
}

impl RawSample {
    /// A sample to write: the library copies it before the call returns, and never frees what it points to.
    pub(crate) fn borrowing(topic: &CStr, payload: &[u8], length: u32) -> RawSample {
        let buffer = payload.as_ptr().cast_mut();
        RawSample { topic: topic.as_ptr(), payload: Octets { maximum: length, length, buffer, release: false } }
    }

    /// A sample that was read.
    ///
    /// # Safety
    /// It is on loan from the library, for at least as long as the result is used.
    pub(crate) unsafe fn view(&self) -> Sample<'_> {
        // SAFETY: the library has checked the sample when it read it: a string ends with its first zero byte, a sequence has as
        // many bytes as its length field states; a string or sequence without memory is empty.
        unsafe {
            let topic = if self.topic.is_null() { c"" } else { CStr::from_ptr(self.topic) };
            let Octets { buffer, length, .. } = self.payload;
            let payload = if buffer.is_null() { &[] } else { std::slice::from_raw_parts(buffer, length as usize) };
            Sample { topic: topic.to_bytes(), payload, source_ns: 0, taken_ns: None }
        }
    }
}

/// A sample that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// The workload's topic, from the sample.
    pub topic: &'a [u8],
    /// The payload.
    pub payload: &'a [u8],
    /// When it was written, ns of its writer's `CLOCK_REALTIME`.
    pub source_ns: i64,
    /// When a thread of the library took it out of its reader, by the reader's clock; `None` if it is taken out now.
    pub taken_ns: Option<u64>,
}

/// Names of the types.
pub const PLAIN_NAME: &CStr = c"pubmark::Message";
/// The keyed one's.
pub const KEYED_NAME: &CStr = c"pubmark::KeyedMessage";

const RETURN: u32 = 0;
const FIELD: u32 = 0x01 << 24;
const KEY_OFFSETS: u32 = 0x07 << 24;
const STRING: u32 = 0x05 << 16;
const SEQUENCE: u32 = 0x07 << 16;
const OF_BYTES: u32 = 0x01 << 8;
const IS_KEY: u32 = 1;
/// A reader of the type must understand its keys.
const MUST_UNDERSTAND: u32 = 1 << 3;

const TOPIC_AT: u32 = offset_of!(RawSample, topic) as u32;
pub(crate) const PAYLOAD_AT: u32 = offset_of!(RawSample, payload) as u32;

pub(crate) static PLAIN_PROGRAM: [u32; 5] = [FIELD | STRING, TOPIC_AT, FIELD | SEQUENCE | OF_BYTES, PAYLOAD_AT, RETURN];
pub(crate) static KEYED_PROGRAM: [u32; 7] = [
    FIELD | STRING | IS_KEY | MUST_UNDERSTAND,
    TOPIC_AT,
    FIELD | SEQUENCE | OF_BYTES,
    PAYLOAD_AT,
    RETURN,
    KEY_OFFSETS | 1,
    0,
];
/// Fields and the return; the list of keys behind it is not counted.
pub(crate) const OPERATIONS: u32 = 3;

/// What holds pointers to constants only.
struct Constant<T>(T);

// SAFETY: the pointers are to constants of this program, which are never written.
unsafe impl<T> Sync for Constant<T> {}

/// The key is described by its name and the offset of its list in the program.
static KEYS: Constant<[KeyDescriptor; 1]> = Constant([KeyDescriptor { name: c"topic".as_ptr(), offset: 5, index: 0 }]);

static PLAIN: Constant<TopicDescriptor> = Constant(descriptor(PLAIN_NAME, &PLAIN_PROGRAM, 0, null()));
static KEYED: Constant<TopicDescriptor> = Constant(descriptor(KEYED_NAME, &KEYED_PROGRAM, 1, KEYS.0.as_ptr()));

const fn descriptor(
    name: &'static CStr,
    program: &'static [u32],
    keys: u32,
    key_descriptors: *const KeyDescriptor,
) -> TopicDescriptor {
    let none = TypeMeta { data: null_mut(), bytes: 0 };
    TopicDescriptor {
        size: size_of::<RawSample>() as u32,
        align: align_of::<RawSample>() as u32,
        flags: 0,
        keys,
        type_name: name.as_ptr(),
        key_descriptors,
        operations: OPERATIONS,
        program: program.as_ptr(),
        meta: c"".as_ptr(),
        type_information: TypeMeta { data: null_mut(), bytes: 0 },
        type_mapping: none,
        representations: 0,
    }
}

impl Kind {
    pub(crate) fn descriptor(self) -> *const TopicDescriptor {
        match self {
            Kind::Plain => &raw const PLAIN.0,
            Kind::Keyed => &raw const KEYED.0,
        }
    }
}
