//! Appends values: the shortest constructor that holds them.

/// Appends a described list, the form of every performative, terminus, outcome and error.
pub fn composite(descriptor: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut FieldWriter<'_>)) {
    out.extend_from_slice(&[0x00, 0x53, descriptor]);
    let start = out.len();
    // A list of less than 256 B; a larger one is re-encoded below.
    out.extend_from_slice(&[0xc0, 0, 0]);
    let mut fields = FieldWriter { out: &mut *out, count: 0, nulls: 0 };
    write(&mut fields);
    let count = fields.count;
    let bytes = out.len() - start - 3;
    if count == 0 {
        out.truncate(start);
        out.push(0x45);
    } else if let Ok(size) = u8::try_from(bytes + 1) {
        out[start + 1..start + 3].copy_from_slice(&[size, count]);
    } else {
        let size = (bytes as u32 + 4).to_be_bytes();
        let head = [0xd0, size[0], size[1], size[2], size[3], 0, 0, 0, count];
        out.splice(start..start + 3, head);
    }
}

/// Appends the fields of a list in their order. Those behind the last that is not null are left out, as the standard allows.
#[derive(Debug)]
pub struct FieldWriter<'a> {
    out: &'a mut Vec<u8>,
    count: u8,
    /// Fields left out so far; written as soon as one follows that is not.
    nulls: u8,
}

impl FieldWriter<'_> {
    fn begin(&mut self) -> &mut Vec<u8> {
        self.count += self.nulls + 1;
        self.out.resize(self.out.len() + usize::from(self.nulls), 0x40);
        self.nulls = 0;
        self.out
    }

    /// A field without a value.
    pub fn null(&mut self) {
        self.nulls += 1;
    }

    /// A truth value.
    pub fn boolean(&mut self, value: bool) {
        self.begin().push(if value { 0x41 } else { 0x42 });
    }

    /// A number of 8 bits.
    pub fn ubyte(&mut self, value: u8) {
        self.begin().extend_from_slice(&[0x50, value]);
    }

    /// A number of 16 bits.
    pub fn ushort(&mut self, value: u16) {
        let [high, low] = value.to_be_bytes();
        self.begin().extend_from_slice(&[0x60, high, low]);
    }

    /// A number of 32 bits.
    pub fn uint(&mut self, value: u32) {
        let out = self.begin();
        match u8::try_from(value) {
            Ok(0) => out.push(0x43),
            Ok(small) => out.extend_from_slice(&[0x52, small]),
            Err(_) => {
                let [a, b, c, d] = value.to_be_bytes();
                out.extend_from_slice(&[0x70, a, b, c, d]);
            }
        }
    }

    /// A number of 32 bits, or none.
    pub fn optional_uint(&mut self, value: Option<u32>) {
        match value {
            Some(value) => self.uint(value),
            None => self.null(),
        }
    }

    /// A truth value, or none.
    pub fn optional_boolean(&mut self, value: Option<bool>) {
        match value {
            Some(value) => self.boolean(value),
            None => self.null(),
        }
    }

    /// Text, or none.
    pub fn optional_text(&mut self, value: Option<&str>) {
        match value {
            Some(value) => self.text(value),
            None => self.null(),
        }
    }

    /// A number of 64 bits.
    pub fn ulong(&mut self, value: u64) {
        let out = self.begin();
        match u8::try_from(value) {
            Ok(0) => out.push(0x44),
            Ok(small) => out.extend_from_slice(&[0x53, small]),
            Err(_) => {
                out.push(0x80);
                out.extend_from_slice(&value.to_be_bytes());
            }
        }
    }

    /// Bytes.
    pub fn binary(&mut self, value: &[u8]) {
        sized(0xa0, value, self.begin());
    }

    /// A value that is encoded already; none if it is empty.
    pub fn encoded(&mut self, value: &[u8]) {
        if value.is_empty() {
            self.null();
        } else {
            self.begin().extend_from_slice(value);
        }
    }

    /// Text.
    pub fn text(&mut self, value: &str) {
        sized(0xa1, value.as_bytes(), self.begin());
    }

    /// A name of the protocol's.
    pub fn symbol(&mut self, value: &str) {
        sized(0xa3, value.as_bytes(), self.begin());
    }

    /// Names of the protocol's, of up to 255 B each.
    pub fn symbols(&mut self, values: &[&str]) {
        let out = self.begin();
        let bytes: usize = values.iter().map(|value| 1 + value.len()).sum();
        out.push(0xf0);
        out.extend_from_slice(&(bytes as u32 + 5).to_be_bytes());
        out.extend_from_slice(&(values.len() as u32).to_be_bytes());
        out.push(0xa3);
        for value in values {
            out.push(value.len() as u8);
            out.extend_from_slice(value.as_bytes());
        }
    }

    /// A map from names to texts.
    pub fn properties(&mut self, pairs: &[(&str, &str)]) {
        let out = self.begin();
        out.push(0xd1);
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(2 * pairs.len() as u32).to_be_bytes());
        for (name, value) in pairs {
            sized(0xa3, name.as_bytes(), out);
            sized(0xa1, value.as_bytes(), out);
        }
        let size = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&size.to_be_bytes());
    }

    /// A map of one filter: a text with a descriptor, under its name.
    pub fn filter(&mut self, name: &str, descriptor: u64, text: &str) {
        let out = self.begin();
        out.push(0xd1);
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&2u32.to_be_bytes());
        sized(0xa3, name.as_bytes(), out);
        out.extend_from_slice(&[0x00, 0x80]);
        out.extend_from_slice(&descriptor.to_be_bytes());
        sized(0xa1, text.as_bytes(), out);
        let size = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&size.to_be_bytes());
    }

    /// A described list.
    pub fn composite(&mut self, descriptor: u8, write: impl FnOnce(&mut FieldWriter<'_>)) {
        composite(descriptor, self.begin(), write);
    }
}

/// Appends bytes behind their length; the constructor with a length of 4 B is 16 higher than that with one of 1 B.
pub(super) fn sized(short: u8, value: &[u8], out: &mut Vec<u8>) {
    sized_head(short, value.len(), out);
    out.extend_from_slice(value);
}

/// The same without the bytes, which are to follow.
pub(super) fn sized_head(short: u8, bytes: usize, out: &mut Vec<u8>) {
    match u8::try_from(bytes) {
        Ok(bytes) => out.extend_from_slice(&[short, bytes]),
        Err(_) => {
            out.push(short + 0x10);
            out.extend_from_slice(&(bytes as u32).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut FieldWriter<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        composite(0x10, &mut out, write);
        out
    }

    #[test]
    fn lists_take_the_shortest_form_and_leave_out_what_is_null_at_their_end() {
        assert_eq!(written(|_| {}), [0, 0x53, 0x10, 0x45]);
        assert_eq!(written(|fields| fields.null()), [0, 0x53, 0x10, 0x45]);
        let middle = |fields: &mut FieldWriter<'_>| {
            fields.null();
            fields.uint(7);
            fields.null();
        };
        assert_eq!(written(middle), [0, 0x53, 0x10, 0xc0, 4, 2, 0x40, 0x52, 7]);
        // 252 B and a head of 2 fill a list of 255; one byte more needs the larger form.
        let full = written(|fields| fields.binary(&[1; 252]));
        assert_eq!((&full[3..8], full.len()), (&[0xc0, 255, 1, 0xa0, 252][..], 3 + 3 + 254));
        let large = written(|fields| fields.binary(&[1; 253]));
        assert_eq!((&large[3..14], large.len()), (&[0xd0, 0, 0, 1, 3, 0, 0, 0, 1, 0xa0, 253][..], 3 + 9 + 255));
    }
}
