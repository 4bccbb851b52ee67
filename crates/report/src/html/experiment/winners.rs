//! Table of winners: one row per setting, one column per figure, for experiments with more settings than a sentence can
//! name.

use maud::{Markup, html};
use pubmark_record::experiment::Contest;

use super::systems::key;
use crate::columns::{EXPERIMENT_COLUMNS, ExperimentColumn};
use crate::experiment::{Group, View};

/// Fewest settings for which the table is shown.
const SETTINGS: usize = 3;

pub(super) fn section(view: &View) -> Markup {
    let judged: Vec<&ExperimentColumn> =
        EXPERIMENT_COLUMNS.iter().filter(|column| view.contests(column.figure).next().is_some()).collect();
    if view.groups.len() < SETTINGS || judged.is_empty() {
        return html! {};
    }
    html! {
        h3 { "Who wins where" }
        div.scroll { table.winners {
            thead { tr { th { "" } @for column in &judged { th { (column.head) } } } }
            tbody {
                @for group in &view.groups {
                    tr {
                        th scope="row" { (group.label) }
                        @for column in &judged {
                            @match contest(view, group, column.figure).map(|contest| contest.winner.as_deref()) {
                                Some(Some(winner)) => td { (winner_of(view, winner)) }
                                Some(None) => td.none { "no winner" }
                                None => td.none { "no contest" }
                            }
                        }
                    }
                }
            }
        } }
    }
}

/// The contest of a setting by a figure.
pub(super) fn contest<'a>(view: &View<'a>, group: &Group, figure: &str) -> Option<&'a Contest> {
    let is_here = |contest: &&Contest| {
        contest.axis == view.compared
            && contest.among.len() == group.among.len()
            && contest.among.iter().all(|(name, value)| group.among.get(name.as_str()) == Some(&value.as_str()))
    };
    view.contests(figure).find(is_here)
}

fn winner_of(view: &View, id: &str) -> Markup {
    let member = view.members().find(|member| member.cell.id == id);
    html! {
        @match member {
            Some(member) => { span.key { (key(member.style)) } (member.name) }
            None => (id)
        }
    }
}
