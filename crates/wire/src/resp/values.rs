//! Goes through a list or a map that was cut out of a stream of bytes.

use super::parse::{Head, head, skip_attribute};

/// One value of a list, those in it behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A string, a number, anything on one line.
    Text(&'a [u8]),
    /// So many values follow that belong together; a map has two for each entry.
    Open(usize),
    /// Nothing.
    Null,
}

/// The values of a [`super::Reply::Aggregate`], itself first.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Values<'a> {
    /// From the front.
    pub fn new(bytes: &'a [u8]) -> Values<'a> {
        Values { bytes, at: 0 }
    }

    /// The next value if it opens a list or a map: how many values it has.
    pub fn open(&mut self) -> Option<usize> {
        match self.next()? {
            Value::Open(count) => Some(count),
            Value::Text(_) | Value::Null => None,
        }
    }

    /// The next value if it is a text.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        match self.next()? {
            Value::Text(text) => Some(text),
            Value::Open(_) | Value::Null => None,
        }
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let mut skipped = 0;
        while self.at < self.bytes.len() {
            // The whole was read once, so neither an error nor a part can be left.
            match head(self.bytes, &mut self.at, self.bytes.len()).ok()?.ok()? {
                Head::Line(b'_', _) | Head::Null => return Some(Value::Null),
                Head::Line(_, text) | Head::Bulk(text) | Head::BulkError(text) => return Some(Value::Text(text)),
                Head::Aggregate(b'|', follow) => {
                    let partial = skip_attribute(self.bytes, &mut self.at, self.bytes.len(), follow, &mut skipped);
                    if partial.ok()?.is_some() {
                        return None;
                    }
                }
                Head::Aggregate(_, count) => return Some(Value::Open(count)),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_in_a_list_is_no_value_of_it() {
        let mut values = Values::new(b"*2\r\n|1\r\n+ttl\r\n:3600\r\n+a\r\n+b\r\n");
        assert_eq!((values.open(), values.text(), values.text()), (Some(2), Some(&b"a"[..]), Some(&b"b"[..])));
        assert_eq!(values.next(), None);
    }

    #[test]
    fn the_entries_of_a_stream_are_iterated() {
        let answer =
            b"%1\r\n$1\r\nk\r\n*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nt\r\n$3\r\na/b\r\n*2\r\n$3\r\n1-1\r\n_\r\n";
        let mut values = Values::new(answer);
        assert_eq!((values.open(), values.text(), values.open()), (Some(2), Some(&b"k"[..]), Some(2)));
        assert_eq!((values.open(), values.text(), values.open()), (Some(2), Some(&b"1-0"[..]), Some(2)));
        assert_eq!((values.text(), values.text()), (Some(&b"t"[..]), Some(&b"a/b"[..])));
        assert_eq!((values.open(), values.text(), values.next()), (Some(2), Some(&b"1-1"[..]), Some(Value::Null)));
        assert_eq!(values.next(), None);
    }
}
