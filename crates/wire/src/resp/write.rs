//! What a client writes: commands, which are arrays of bulk strings.

use super::END;

/// Appends a command.
pub fn encode_command(words: &[&[u8]], out: &mut Vec<u8>) {
    append_array(words.len(), words, out);
}

/// Appends a command up to its last word, which follows as a bulk string: [`append_bulk_front`], its bytes, [`END`].
pub fn encode_command_front(words: &[&[u8]], out: &mut Vec<u8>) {
    append_array(words.len() + 1, words, out);
}

fn append_array(length: usize, words: &[&[u8]], out: &mut Vec<u8>) {
    out.push(b'*');
    crate::decimal::append(length as u64, out);
    out.extend_from_slice(END);
    for word in words {
        append_bulk_front(word.len(), out);
        out.extend_from_slice(word);
        out.extend_from_slice(END);
    }
}

/// Appends the line ahead of a bulk string; its bytes and [`END`] follow.
#[inline]
pub fn append_bulk_front(bytes: usize, out: &mut Vec<u8>) {
    out.push(b'$');
    crate::decimal::append(bytes as u64, out);
    out.extend_from_slice(END);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_bulk_strings() {
        let mut out = Vec::new();
        encode_command(&[b"PUBLISH", b"a/b", b"h\r\ni"], &mut out);
        assert_eq!(out, b"*3\r\n$7\r\nPUBLISH\r\n$3\r\na/b\r\n$4\r\nh\r\ni\r\n");
        let mut parts = Vec::new();
        encode_command_front(&[b"PUBLISH", b"a/b"], &mut parts);
        append_bulk_front(4, &mut parts);
        parts.extend_from_slice(b"h\r\ni\r\n");
        assert_eq!(parts, out);
    }
}
