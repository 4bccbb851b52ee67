//! Messages between sites, by the labels that the placement of groups uses.

use pubmark_record::latency::upper;
use pubmark_record::record::Record;

use super::{Table, optional, summary_fields, summary_names, text};

/// One line per pair of sites; no lines in a run without labels.
pub(super) fn by_label(record: &Record) -> String {
    let fixed = ["label", "publisher_site", "subscriber_site", "expected", "delivered", "lost", "clock_bound_us"]
        .map(String::from);
    let names: Vec<String> =
        fixed.into_iter().chain(summary_names("latency_us")).chain(summary_names("latency_lower_us")).collect();
    let mut table = Table::new(&names);
    for row in &record.tables.by_label {
        let mut fields = vec![
            text(&row.label),
            optional(row.publisher_site.as_deref().map(text)),
            optional(row.subscriber_site.as_deref().map(text)),
            row.expected.to_string(),
            row.delivered.to_string(),
            row.lost.to_string(),
            optional(row.clock_bound_us),
        ];
        fields.extend(summary_fields(upper(&row.latency)));
        fields.extend(summary_fields(row.latency.as_ref().and_then(|latency| latency.lower.as_ref())));
        table.row(&fields);
    }
    table.text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::words::site_to_site;
    use pubmark_record::sample;
    use pubmark_record::tables::LabelRow;

    #[test]
    fn a_site_to_which_nothing_came_has_empty_fields_and_dashes() {
        let mut record = sample::record();
        let mut bounds = record.latency.total.clone().unwrap();
        (bounds.upper.count, bounds.upper.p50, bounds.upper.p99) = (40, Some(310.0), None);
        let lower = bounds.lower.as_mut().unwrap();
        (lower.p50, lower.p99) = (Some(250.0), None);
        let row = LabelRow {
            label: "site".to_owned(),
            publisher_site: Some("edge".to_owned()),
            subscriber_site: None,
            expected: 1_000,
            delivered: 0,
            lost: 1_000,
            latency: None,
            clock_bound_us: None,
        };
        let measured = LabelRow {
            subscriber_site: Some("cloud".to_owned()),
            delivered: 999,
            lost: 1,
            latency: Some(bounds),
            clock_bound_us: Some(44.0),
            ..row.clone()
        };
        assert_eq!(site_to_site(&row), "edge → (no label): delivered 0 of 1,000, lost 1,000; p50 —, p99 —");
        let words = site_to_site(&measured);
        assert!(
            words.starts_with("edge → cloud: delivered 999 of 1,000, lost 1; p50 ") && words.ends_with("p99 —"),
            "{words}"
        );
        assert!(words.contains("0.25") && words.contains("0.31") && words.contains(" ms, p99"), "{words}");
        record.tables.by_label = vec![row, measured];
        let text = by_label(&record);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("site,edge,,1000,0,1000,,,") && lines[1].ends_with(",,"), "{text}");
        assert!(lines[2].starts_with("site,edge,cloud,1000,999,1,44,40,"), "{text}");
        assert!(lines.iter().all(|line| line.split(',').count() == lines[0].split(',').count()), "{text}");
    }
}
