//! Latency breakdown by class and part.

use pubmark_record::latency::{lower, upper};
use pubmark_record::latency_breakdown::PARTS;
use pubmark_record::record::Record;

use super::{Table, summary_fields, summary_names, text};

/// One line per class and part.
pub(super) fn latency_breakdown(record: &Record) -> String {
    let mut names = ["class", "followed", "complete", "consistent", "part"].map(String::from).to_vec();
    names.extend(summary_names("time_us"));
    // Only the whole has bounds.
    names.extend(summary_names("time_lower_us"));
    let mut table = Table::new(&names);
    for row in record.latency.breakdown.iter().flat_map(|figures| &figures.rows) {
        let parts = row.parts.in_order().into_iter().zip(PARTS).chain([(upper(&row.parts.whole), "whole")]);
        for (summary, part) in parts {
            let mut fields = vec![text(&row.class)];
            fields.extend([row.followed, row.complete, row.consistent].map(|count| count.to_string()));
            fields.push(part.to_owned());
            fields.extend(summary_fields(summary));
            fields.extend(summary_fields(lower(&row.parts.whole).filter(|_| part == "whole")));
            table.row(&fields);
        }
    }
    table.text
}
