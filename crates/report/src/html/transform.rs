//! Steps of `transform`.

use maud::{Markup, html};
use pubmark_record::record::Record;
use pubmark_record::transform::TransformRow;

use crate::numbers::{count, time};
use crate::words;

/// Section of a record whose device groups have steps.
pub(super) fn section(record: &Record) -> Markup {
    html! {
        div.scroll { table {
            thead { tr {
                th { "devices" } th { "step" } th.number { "size" } th.number { "sent" } th.number { "CPU for each" }
                th.number { "received" } th.number { "CPU for each" } th.number { "corrupt" }
            } }
            tbody { @for row in &record.cost.transform { (line(row)) } }
        } }
        p.hint {
            "What publishers did with the body of each message before they sent it, and subscribers with each copy that they "
            "received. The publishers’ CPU time is in the latency, in both bounds: a device does this work, too. The subscribers’ "
            "is in no latency."
        }
    }
}

fn line(row: &TransformRow) -> Markup {
    html! {
        tr {
            th scope="row" { (row.group) }
            td { (row.step) }
            td.number { (words::step_size(&row.publishing)) }
            td.number { (count(row.publishing.messages)) }
            td.number { (time(row.publishing.cpu_us_each())) }
            td.number { (count(row.receiving.messages)) }
            td.number { (time(row.receiving.cpu_us_each())) }
            td.number { (count(row.failed)) }
        }
    }
}
