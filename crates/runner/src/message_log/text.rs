//! The message log as text.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use super::RowWriter;
use super::columns::{COLUMNS, LoggedRow, Value};

/// Comma-separated values with a header (RFC 4180); an unknown value is empty.
pub struct Csv {
    out: BufWriter<File>,
}

impl Csv {
    /// Writes the header.
    pub fn new(file: File) -> io::Result<Csv> {
        let mut out = BufWriter::new(file);
        writeln!(out, "{}", COLUMNS.map(|column| column.name).join(","))?;
        Ok(Csv { out })
    }
}

impl RowWriter for Csv {
    fn row(&mut self, row: &LoggedRow<'_>) -> io::Result<()> {
        for (place, column) in COLUMNS.iter().enumerate() {
            if place > 0 {
                self.out.write_all(b",")?;
            }
            match (column.of)(row) {
                Value::Integer(None) | Value::Text(None) => {}
                Value::Integer(Some(number)) => write!(self.out, "{number}")?,
                Value::Text(Some(text)) => self.out.write_all(field(text).as_bytes())?,
                Value::Flag(flag) => write!(self.out, "{flag}")?,
            }
        }
        self.out.write_all(b"\n")
    }

    fn end(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

/// A text as a field, in quotes where RFC 4180 requires them.
pub fn field(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

/// One JSON object for each line; an unknown value is `null`.
pub struct Ndjson<W: Write> {
    out: BufWriter<W>,
}

impl<W: Write> Ndjson<W> {
    /// Writes to a file or a pipe.
    pub fn new(out: W) -> Ndjson<W> {
        Ndjson { out: BufWriter::new(out) }
    }
}

impl<W: Write> RowWriter for Ndjson<W> {
    /// Writes the fields in the order of the columns, which a map would not preserve.
    fn row(&mut self, row: &LoggedRow<'_>) -> io::Result<()> {
        for (place, column) in COLUMNS.iter().enumerate() {
            write!(self.out, "{}\"{}\":", if place == 0 { '{' } else { ',' }, column.name)?;
            match (column.of)(row) {
                Value::Integer(number) => serde_json::to_writer(&mut self.out, &number)?,
                Value::Text(text) => serde_json::to_writer(&mut self.out, &text)?,
                Value::Flag(flag) => serde_json::to_writer(&mut self.out, &flag)?,
            }
        }
        self.out.write_all(b"}\n")
    }

    fn end(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}
