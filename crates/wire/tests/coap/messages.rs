//! Messages of every shape.

use proptest::prelude::*;
use pubmark_wire::coap::{Code, Kind, Message, Writer};

/// A message with its parts in memory of its own.
#[derive(Clone, Debug)]
pub struct Parts {
    pub kind: Kind,
    pub code: Code,
    pub message_id: u16,
    pub token: Vec<u8>,
    /// In the order of their numbers.
    pub options: Vec<(u16, Vec<u8>)>,
    pub payload: Vec<u8>,
}

impl Parts {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(self.kind, self.code, self.message_id, &self.token, &mut out);
        for (number, value) in &self.options {
            writer.option(*number, value);
        }
        writer.end(&self.payload);
        out
    }

    pub fn of(message: &Message<'_>) -> Parts {
        Parts {
            kind: message.kind,
            code: message.code,
            message_id: message.message_id,
            token: message.token.to_vec(),
            options: message.options.into_iter().map(|(number, value)| (number, value.to_vec())).collect(),
            payload: message.payload.to_vec(),
        }
    }
}

pub fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![Kind::Confirmable, Kind::NonConfirmable, Kind::Acknowledgement, Kind::Reset])
}

/// Numbers and lengths around the borders of their three forms.
fn option() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let number = prop_oneof![
        4 => prop::sample::select(vec![1u16, 6, 11, 12, 13, 14, 23, 258, 268, 269, 270, 281, 282, 65_535]),
        1 => any::<u16>(),
    ];
    let length = prop_oneof![4 => 0usize..20, 1 => prop::sample::select(vec![255usize, 268, 269, 270, 1_034])];
    (number, length, any::<u8>()).prop_map(|(number, length, byte)| (number, vec![byte; length]))
}

pub fn parts() -> impl Strategy<Value = Parts> {
    let codes = prop::sample::select(vec![0x01u8, 0x02, 0x03, 0x04, 0x41, 0x44, 0x45, 0x5f, 0x80, 0x84, 0x8d, 0xa3]);
    let token = prop::collection::vec(any::<u8>(), 0..=8);
    let options = prop::collection::vec(option(), 0..8);
    let payload = prop::collection::vec(any::<u8>(), 0..40);
    (kind(), codes, any::<u16>(), token, options, payload).prop_map(
        |(kind, code, message_id, token, mut options, payload)| {
            options.sort_by_key(|(number, _)| *number);
            Parts { kind, code: Code(code), message_id, token, options, payload }
        },
    )
}
