//! The message log as a Parquet file, compressed with Snappy.

use std::fs::File;
use std::io;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::RowWriter;
use super::columns::{COLUMNS, Kind, LoggedRow, Value};

/// Rows of a row group. They are in memory until the group is written.
const GROUP_ROWS: usize = 100_000;

/// Values of a column in the current row group. Unknown values are left out; `known` has 1 for each known value, and 0
/// for each unknown one.
#[derive(Default)]
struct Buffer {
    integers: Vec<i64>,
    texts: Vec<ByteArray>,
    flags: Vec<bool>,
    known: Vec<i16>,
}

/// A Parquet file that is being written.
pub struct Parquet {
    writer: SerializedFileWriter<File>,
    buffers: [Buffer; COLUMNS.len()],
    rows: usize,
}

impl Parquet {
    /// Writes the header.
    pub fn new(file: File) -> io::Result<Parquet> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let schema = Arc::new(schema().map_err(failed)?);
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(failed)?;
        let buffers = std::array::from_fn(|_| Buffer::default());
        Ok(Parquet { writer, buffers, rows: 0 })
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (buffer, described) in self.buffers.iter_mut().zip(&COLUMNS) {
            let Some(mut column) = group.next_column()? else { break };
            let known = Some(&buffer.known[..]);
            // Not by the values that there are: a row group may have none of a column.
            match described.kind {
                Kind::Text => column.typed::<ByteArrayType>().write_batch(&buffer.texts, known, None)?,
                Kind::Flag => column.typed::<BoolType>().write_batch(&buffer.flags, known, None)?,
                Kind::Integer => column.typed::<Int64Type>().write_batch(&buffer.integers, known, None)?,
            };
            column.close()?;
            *buffer = Buffer::default();
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl RowWriter for Parquet {
    fn row(&mut self, row: &LoggedRow<'_>) -> io::Result<()> {
        for (column, buffer) in COLUMNS.iter().zip(&mut self.buffers) {
            let is_known = match (column.of)(row) {
                Value::Integer(number) => number.map(|number| buffer.integers.push(number)).is_some(),
                Value::Text(text) => text.map(|text| buffer.texts.push(text.into())).is_some(),
                Value::Flag(flag) => {
                    buffer.flags.push(flag);
                    true
                }
            };
            buffer.known.push(is_known.into());
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.write_group().map_err(failed) } else { Ok(()) }
    }

    fn end(mut self: Box<Self>) -> io::Result<()> {
        if self.rows > 0 {
            self.write_group().map_err(failed)?;
        }
        self.writer.close().map(|_| ()).map_err(failed)
    }
}

fn schema() -> Result<Type, ParquetError> {
    let fields = COLUMNS.iter().map(|column| {
        let (physical, converted) = match column.kind {
            Kind::Integer => (Physical::INT64, ConvertedType::NONE),
            Kind::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            Kind::Flag => (Physical::BOOLEAN, ConvertedType::NONE),
        };
        let field = Type::primitive_type_builder(column.name, physical);
        let field = field.with_repetition(Repetition::OPTIONAL).with_converted_type(converted);
        field.build().map(Arc::new)
    });
    Type::group_type_builder("messages").with_fields(fields.collect::<Result<_, _>>()?).build()
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => io::Error::other(source),
        error => io::Error::other(error),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_engine::message_log::entries::{Entry, EntryOutcome};

    use super::*;

    #[test]
    fn a_row_group_may_have_no_value_of_a_column() {
        let entry = Entry {
            outcome: EntryOutcome::NoSubscriber,
            publisher: 7,
            sequence: None,
            audience: None,
            payload_bytes: None,
            due_ns: None,
            ready_ns: None,
            write_start_ns: None,
            received_ns: None,
            latency_ns: None,
            out_of_order: false,
        };
        let row =
            LoggedRow { entry: &entry, device_type: "meter", node: 1, topic: "a", qos: 0, subscriber_group: None };
        let file = tempfile::tempfile().unwrap();
        let mut log: Box<dyn RowWriter> = Box::new(Parquet::new(file.try_clone().unwrap()).unwrap());
        log.row(&row).unwrap();
        log.end().unwrap();
        assert!(file.metadata().unwrap().len() > 0);
    }
}
