//! Distribution of latencies over time.

use pubmark_record::latency_bin::bucket_edges_us;
use pubmark_record::record::Record;

use super::Table;

/// One line per bin and bucket that holds a message.
pub(super) fn latency_bins(record: &Record) -> String {
    let mut table = Table::new(&["t_s", "width_s", "from_us", "to_us", "messages"].map(String::from));
    for bin in &record.tables.latency_bins {
        for (bucket, messages) in bin.buckets().filter(|(_, messages)| *messages > 0) {
            let (from_us, to_us) = bucket_edges_us(bucket);
            table.row(&[
                bin.t_s.to_string(),
                bin.width_s.to_string(),
                format!("{from_us:.1}"),
                format!("{to_us:.1}"),
                messages.to_string(),
            ]);
        }
    }
    table.text
}
