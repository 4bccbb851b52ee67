//! Why cells of a table have no value, or not of all repetitions: each reason once, with the cells that have it. Where a reason holds for
//! all values of an axis, the axis is named in place of its values: `EMQX, every workload`.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use pubmark_model::experiment::axis_title;
use pubmark_record::by_reason::{by_reason, named};

use crate::record::{TableCell, TableResult};
use crate::series::SECOND;
use crate::words::head;

/// The values of a cell on the axes of its table: those of the rows, then those of the columns.
type Values<'a> = Vec<&'a str>;

/// Cells of a table: one value of each axis, or `None` for every value.
type Group<'a> = Vec<Option<&'a str>>;

/// Reasons of a table's cells that are full sentences, each with the names of its cells, for all pages. What an earlier table of the page
/// says of the same cells of the experiment is left out.
pub(crate) fn reasons(tables: &[TableResult], position: usize) -> Vec<(String, String)> {
    let (before, table) = (&tables[..position], &tables[position]);
    let said: Vec<_> = before.iter().filter(|one| one.experiment == table.experiment).flat_map(of_table).collect();
    let new = of_table(table).into_iter().filter(|one| !said.contains(one));
    new.map(|(reason, cells)| (reason, names(table, &cells))).collect()
}

/// The reasons of a table's cells, with these cells. Only cells with a full sentence have one.
fn of_table(table: &TableResult) -> Vec<(String, Vec<Values<'_>>)> {
    let reason = |cell: &TableCell| Some(format!("{}: {}", cell.reason.as_ref()?, cell.detail.as_ref()?));
    by_reason(table.cells.iter().filter_map(|cell| Some((values(cell), reason(cell)?))))
}

fn values(cell: &TableCell) -> Values<'_> {
    cell.row.iter().chain(&cell.column).map(String::as_str).collect()
}

/// Names of some cells of a table.
fn names(table: &TableResult, cells: &[Values<'_>]) -> String {
    let axes = [table.rows.as_slice(), table.columns.as_slice()].concat();
    let all: Vec<Values<'_>> = table.cells.iter().map(values).collect();
    if all.len() > 1 && cells.len() == all.len() {
        return "every cell".to_owned();
    }
    let mut groups: Vec<Group<'_>> = vec![];
    for cell in cells {
        if !groups.iter().any(|group| has(group, cell)) {
            groups.push(widest(cell, cells, &all));
        }
    }
    let names: Vec<String> = groups.iter().map(|group| name(&axes, group)).collect();
    named(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn has(group: &[Option<&str>], cell: &[&str]) -> bool {
    group.iter().zip(cell).all(|(wanted, own)| wanted.is_none_or(|wanted| wanted == *own))
}

/// The group with the most whole axes that has this one of `cells`, and no cell of the table that is not one of them.
fn widest<'a>(cell: &[&'a str], cells: &[Values<'_>], all: &[Values<'_>]) -> Group<'a> {
    let mut choices: Vec<usize> = (0..1 << cell.len()).collect();
    choices.sort_by_key(|whole| Reverse(whole.count_ones()));
    let is_whole = |choice: usize, axis: usize| (choice >> axis) & 1 == 1;
    let group = |choice: usize| -> Group<'a> {
        cell.iter().enumerate().map(|(axis, value)| (!is_whole(choice, axis)).then_some(*value)).collect()
    };
    let holds = |choice: &usize| {
        let group = group(*choice);
        let own: BTreeSet<&Values<'_>> = all.iter().filter(|other| has(&group, other)).collect();
        let whole = (0..cell.len()).filter(|axis| is_whole(*choice, *axis));
        let numbers: Vec<usize> =
            whole.map(|axis| all.iter().map(|other| other[axis]).collect::<BTreeSet<_>>().len()).collect();
        // An axis with one value is not worth a word, and axes of which the table lacks a combination are not whole.
        let is_worth_a_word = numbers.iter().all(|number| *number > 1);
        is_worth_a_word && own.len() == numbers.iter().product::<usize>() && own.iter().all(|one| cells.contains(one))
    };
    choices.into_iter().find(holds).map_or_else(|| group(0), group)
}

fn name(axes: &[String], group: &[Option<&str>]) -> String {
    let (mut given, mut values, mut whole) = (vec![], vec![], vec![]);
    for (axis, value) in axes.iter().zip(group) {
        match value {
            Some(value) => {
                given.push(axis.clone());
                values.push((*value).to_owned());
            }
            None => whole.push(every(axis)),
        }
    }
    let given = head(&given, &values);
    if whole.is_empty() { given } else { format!("{given}, every {}", whole.join(" and ")) }
}

/// What comes after `every`: `workload`; `value of pairs` where the name of the axis is a plural or a word of the workload's author. `every
/// second` would be every other one.
fn every(axis: &str) -> String {
    let title = axis_title(axis);
    let is_no_singular = axis.starts_with("set.") || axis == SECOND || title.ends_with('s');
    if is_no_singular { format!("value of {title}") } else { title.to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use pubmark_record::store;

    use super::*;
    use crate::record::PaperRecord;

    const SYSTEMS: [&str; 3] = ["EMQX", "NanoMQ", "Mosquitto"];

    /// A table of two workloads, QoS 0 and 2, and three systems; cells for which there is a detail are not installed.
    fn table(detail: impl Fn([&str; 3]) -> Option<&'static str>) -> TableResult {
        let mut cells = vec![];
        for workload in ["city", "home"] {
            for qos in ["0", "2"] {
                for system in SYSTEMS {
                    let detail = detail([workload, qos, system]);
                    cells.push(TableCell {
                        row: vec![workload.to_owned(), qos.to_owned()],
                        column: vec![system.to_owned()],
                        printed: None,
                        measured: None,
                        reason: detail.map(|_| "not installed".to_owned()),
                        system_failed: false,
                        detail: detail.map(str::to_owned),
                        started_at: None,
                        complete: None,
                    });
                }
            }
        }
        TableResult {
            title: "One".to_owned(),
            experiment: "one".to_owned(),
            figure: "latency p50".to_owned(),
            rows: vec!["workload".to_owned(), "qos".to_owned()],
            columns: vec!["system".to_owned()],
            printed_of: String::new(),
            differs: String::new(),
            comparable: true,
            cells,
        }
    }

    /// The names of the cells for which this holds.
    fn names_of(is_meant: fn([&str; 3]) -> bool) -> String {
        let found = reasons(&[table(|cell| is_meant(cell).then_some("why"))], 0);
        let [(reason, names)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(reason, "not installed: why");
        names.clone()
    }

    #[test]
    fn a_reason_of_all_values_of_an_axis_names_the_axis() {
        assert_eq!(names_of(|_| true), "every cell");
        assert_eq!(names_of(|[_, _, system]| system == "EMQX"), "EMQX, every workload and QoS");
        assert_eq!(names_of(|[workload, ..]| workload == "city"), "city, every QoS and system");
        assert_eq!(names_of(|[workload, qos, _]| (workload, qos) == ("city", "2")), "city, QoS 2, every system");
        assert_eq!(names_of(|[_, qos, system]| (qos, system) == ("0", "EMQX")), "QoS 0, EMQX, every workload");
        assert_eq!(names_of(|cell| cell == ["city", "2", "EMQX"]), "city, QoS 2, EMQX");
        let both = names_of(|[_, qos, system]| system == "EMQX" || (qos, system) == ("2", "NanoMQ"));
        assert_eq!(both, "EMQX, every workload and QoS; QoS 2, NanoMQ, every workload");
        let but_one = names_of(|cell| cell[2] == "EMQX" && cell != ["home", "2", "EMQX"]);
        assert_eq!(but_one, "QoS 0, EMQX, every workload; city, EMQX, every QoS");
        let words = ["workload", "nodes", "set.pairs", SECOND].map(every);
        assert_eq!(words, ["workload", "value of nodes", "value of pairs", "value of second"]);
    }

    #[test]
    fn an_axis_with_one_value_and_one_of_which_cells_are_absent_are_not_named() {
        let mut one = table(|cell| (cell[2] == "EMQX").then_some("why"));
        one.cells.retain(|cell| cell.row == ["city", "0"]);
        assert_eq!(reasons(std::slice::from_ref(&one), 0)[0].1, "city, QoS 0, EMQX");
        one.cells.retain(|cell| cell.column == ["EMQX"]);
        assert_eq!(reasons(&[one], 0)[0].1, "city, QoS 0, EMQX", "the only cell");
        let mut partial = table(|cell| (cell[2] == "EMQX").then_some("why"));
        partial.cells.retain(|cell| cell.row[0] == "city" || cell.column != ["EMQX"]);
        assert_eq!(reasons(&[partial], 0)[0].1, "city, EMQX, every QoS");
        // Calls with other values of both axes: each value of an axis is there, and not each combination.
        let mut diagonal = table(|cell| (cell[2] == "EMQX").then_some("why"));
        diagonal.cells.retain(|cell| cell.column != ["EMQX"] || cell.row == ["city", "0"] || cell.row == ["home", "2"]);
        assert_eq!(reasons(&[diagonal], 0)[0].1, "city, QoS 0, EMQX; home, QoS 2, EMQX");
    }

    #[test]
    fn reasons_that_differ_stay_several_and_are_said_once_for_each_experiment() {
        let why = |[_, _, system]: [&str; 3]| match system {
            "EMQX" => Some("image `emqx` is not here"),
            "NanoMQ" => Some("image `nanomq` is not here"),
            _ => None,
        };
        let (one, of_another) = (table(why), TableResult { experiment: "two".to_owned(), ..table(why) });
        let more = table(|cell| why(cell).or((cell[0] == "city").then_some("image `emqx` is not here")));
        let tables = [one.clone(), one, of_another, more];
        let expected = [
            ("not installed: image `emqx` is not here".to_owned(), "EMQX, every workload and QoS".to_owned()),
            ("not installed: image `nanomq` is not here".to_owned(), "NanoMQ, every workload and QoS".to_owned()),
        ];
        assert_eq!(reasons(&tables, 0), expected);
        assert!(reasons(&tables, 1).is_empty());
        assert_eq!(reasons(&tables, 2), expected);
        let others = reasons(&tables, 3);
        assert_eq!(others.len(), 1, "of other cells: {others:?}");
        assert_eq!(others[0].1, "EMQX, every workload and QoS; city, Mosquitto, every QoS");
    }

    #[test]
    fn both_pages_name_the_cells_in_the_same_way() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/psmark");
        let mut record: PaperRecord = store::load_as(&folder).unwrap();
        record.tables = vec![table(|cell| (cell[2] == "EMQX").then_some("image `emqx` is not here"))];
        let markdown = crate::markdown(&record);
        let line = "\n- EMQX, every workload and QoS: Not installed: image `emqx` is not here.\n";
        assert!(markdown.contains(line), "{markdown}");
        let html = crate::html(&record);
        let line = ">EMQX, every workload and QoS: Not installed: image <code>emqx</code> is not here.<";
        assert!(html.contains(line), "{html}");
    }
}
