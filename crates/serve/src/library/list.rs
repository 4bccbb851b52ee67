//! A page of the list of submissions and results: filtered, sorted, limited.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::http::StatusCode;
use pubmark_record::capacity::TrialQuantiles;
use pubmark_record::headline::{Kind, Unreadable};
use pubmark_record::past_runs::filter::Filter;
use pubmark_record::past_runs::moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Listed;
use crate::entry::RunEntry;
use crate::problem::Problem;
use crate::shared::Shared;
use crate::store::{Entry, State as RunState};

/// Default number of entries on a page.
pub const PAGE: usize = 50;
/// Maximum number of entries on a page.
const MOST: usize = 500;
/// Prefix of a filter word that selects a tag.
const TAG: &str = "tag=";

/// Filter, order and page of a list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Words and `key=value` separated by spaces, as `pubmark runs` accepts them: `mosquitto verdict=valid,suspect`; and
    /// `tag=NAME` for a tag of a note. A word may also be in the text or a tag of a note. Only results match.
    #[serde(default)]
    pub filter: Option<String>,
    /// Only entries in this state.
    pub state: Option<RunState>,
    /// Only entries of this kind.
    pub kind: Option<Kind>,
    /// Only entries that began at this time or later: `2h` ago, `2026-03-01`. One that has not begun counts from its submission.
    pub since: Option<String>,
    /// Order of the entries.
    #[serde(default)]
    pub sort: Sort,
    /// Reverses the order; entries without a value stay last.
    #[serde(default)]
    pub reverse: bool,
    /// Number of entries to skip.
    #[serde(default)]
    pub offset: usize,
    /// Maximum number of entries: 1 to 500.
    pub limit: Option<usize>,
}

/// Order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first.
    Oldest,
    /// By name of workload or experiment, then the newest first.
    Name,
    /// By system and protocol.
    System,
    /// By state, queued entries first.
    State,
    /// By verdict: valid, suspect, invalid.
    Verdict,
    /// By messages offered per second, the fewest first; entries without this figure are last, here and below.
    Load,
    /// By share of messages delivered, the lowest first.
    Delivered,
    /// By median latency, the lowest first.
    P50,
    /// By p99 latency, the lowest first.
    P99,
}

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Page {
    /// Number of entries that match, on all pages.
    pub total: usize,
    /// Number of entries before this page.
    pub offset: usize,
    /// Entries of the page.
    pub runs: Vec<RunEntry>,
    /// Folders whose record cannot be read, and submissions that cannot be read, as `.serve/queue/ID`.
    pub unreadable: Vec<Unreadable>,
}

/// Conditions for an entry.
struct Criteria {
    filter: Filter,
    tags: Vec<String>,
}

impl Criteria {
    fn of(query: &ListQuery) -> Result<Criteria, Problem> {
        let words = || query.filter.iter().flat_map(|words| words.split_whitespace());
        let tags: Vec<String> = words().filter_map(|word| word.strip_prefix(TAG)).map(str::to_lowercase).collect();
        let others: Vec<String> = words().filter(|word| !word.starts_with(TAG)).map(str::to_owned).collect();
        let filter = Filter::read(&others).map_err(|error| unusable(error.to_string()).hint(error.hint()))?;
        Ok(Criteria { filter, tags })
    }

    fn is_empty(&self) -> bool {
        self.filter.is_empty() && self.tags.is_empty()
    }

    fn matches(&self, one: &Listed) -> bool {
        let has = |tag: &String| one.note.tags.iter().any(|other| other.to_lowercase() == *tag);
        let texts: Vec<&str> = one.note.tags.iter().map(String::as_str).chain([one.note.text.as_str()]).collect();
        self.tags.iter().all(has) && self.filter.matches_with(&one.headline, &texts)
    }
}

fn unusable(message: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, message)
}

/// Number of entries on a page: the `limit` of a query, or the default.
///
/// # Errors
/// `limit` is out of range.
pub fn limit(given: Option<usize>) -> Result<usize, Problem> {
    let limit = given.unwrap_or(PAGE);
    match (1..=MOST).contains(&limit) {
        true => Ok(limit),
        false => Err(unusable(format!("`limit` is 1 to {MOST}, not {limit}"))),
    }
}

/// The page for a query.
///
/// # Errors
/// The query cannot be used, or the results folder cannot be read.
pub fn page(shared: &Shared, query: &ListQuery) -> Result<Page, Problem> {
    let criteria = Criteria::of(query)?;
    // No part of the criteria, which only results match: a submission without a result has a time, too.
    let since = query.since.as_deref().map(moment::read).transpose().map_err(unusable)?;
    let limit = limit(query.limit)?;
    let mut found = shared.library.list(shared.store.runs()).map_err(|error| Problem::internal(&error))?;
    found.unreadable.extend(shared.store.unreadable().map_err(|error| Problem::internal(&error))?);
    let mut entries = entries(shared, &found.results, &criteria);
    entries.retain(|entry| since.as_deref().is_none_or(|since| entry.at() >= since));
    entries.retain(|entry| query.state.is_none_or(|state| entry.state == state));
    entries.retain(|entry| query.kind.is_none_or(|kind| entry.kind == kind));
    sort(&mut entries, query.sort, query.reverse);
    let total = entries.len();
    let runs = entries.into_iter().skip(query.offset).take(limit).collect();
    Ok(Page { total, offset: query.offset, runs, unreadable: found.unreadable })
}

/// Submissions with their results, and folders that no submission created. Submissions without a result match no filter.
fn entries(shared: &Shared, results: &[Arc<Listed>], criteria: &Criteria) -> Vec<RunEntry> {
    let by_folder: HashMap<&str, &Arc<Listed>> =
        results.iter().map(|one| (one.headline.folder.as_str(), one)).collect();
    let waiting = shared.queue.waiting();
    let mut made = BTreeSet::new();
    let mut entries = Vec::new();
    let mut before = 0;
    for entry in shared.store.all() {
        made.extend(entry.status.folders.iter().cloned());
        let position = (entry.status.state == RunState::Queued).then_some(before);
        before += usize::from(!entry.status.state.is_over());
        // The newest folder may belong to the repetition in progress.
        let result = entry.status.folders.iter().rev().find_map(|name| by_folder.get(name.as_str()));
        if criteria.is_empty() || result.is_some_and(|one| criteria.matches(one)) {
            let waits_for = waiting.reason(&entry);
            let described = RunEntry::of_submission(entry, position, result.map(|one| one.as_ref()));
            entries.push(RunEntry { waits_for, ..described });
        }
    }
    let without = results.iter().filter(|one| !made.contains(&one.headline.folder) && criteria.matches(one));
    entries.extend(without.map(|one| RunEntry::of_folder(one)));
    entries
}

/// Submissions that are queued or being executed, in their order.
pub fn open(shared: &Shared) -> Vec<RunEntry> {
    let waiting = shared.queue.waiting();
    let open = shared.store.all().into_iter().filter(|entry| !entry.status.state.is_over());
    let described = |(position, entry): (usize, Entry)| {
        let waits_for = waiting.reason(&entry);
        RunEntry { waits_for, ..RunEntry::of_submission(entry, Some(position), None) }
    };
    open.enumerate().map(described).collect()
}

fn sort(entries: &mut [RunEntry], by: Sort, reverse: bool) {
    // Within the same second, the identifier decides: pages must be deterministic.
    entries.sort_by(|one, other| other.at().cmp(one.at()).then_with(|| other.id.cmp(&one.id)));
    let turned = |order: Ordering| if reverse { order.reverse() } else { order };
    let mut by_figure = |figure: fn(&RunEntry) -> Option<f64>| {
        entries.sort_by(|one, other| match (figure(one), figure(other)) {
            (Some(one), Some(other)) => turned(one.total_cmp(&other)),
            (one, other) => other.is_some().cmp(&one.is_some()),
        });
    };
    match by {
        Sort::Load => return by_figure(|entry| entry.offered_per_s),
        Sort::Delivered => return by_figure(delivered),
        Sort::P50 => return by_figure(|entry| latency(entry, |quantiles| quantiles.p50_us)),
        Sort::P99 => return by_figure(|entry| latency(entry, |quantiles| quantiles.p99_us)),
        Sort::Verdict => return by_figure(|entry| Some(f64::from(entry.headline.as_ref()?.verdict? as u8))),
        _ => {}
    }
    match by {
        Sort::Oldest if !reverse => entries.reverse(),
        Sort::Oldest => {}
        Sort::Name => entries.sort_by(|one, other| turned(one.name.cmp(&other.name))),
        Sort::System => entries.sort_by(|one, other| turned(system(one).cmp(&system(other)))),
        Sort::State => entries.sort_by(|one, other| turned(one.state.cmp(&other.state))),
        _ if reverse => entries.reverse(),
        _ => {}
    }
}

fn system(entry: &RunEntry) -> (&[String], &[String]) {
    (&entry.systems, entry.headline.as_ref().map_or(&[], |headline| &headline.protocol))
}

/// Share of the wanted deliveries that arrived; of the expected ones for a run stored without it.
fn delivered(entry: &RunEntry) -> Option<f64> {
    let headline = entry.headline.as_ref()?;
    headline.delivered_share.or_else(|| {
        let expected = headline.expected.filter(|expected| *expected > 0)?;
        Some(headline.delivered? as f64 / expected as f64)
    })
}

fn latency(entry: &RunEntry, quantile: fn(&TrialQuantiles) -> Option<f64>) -> Option<f64> {
    quantile(&entry.headline.as_ref()?.latency.as_ref()?.upper)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::sample;
    use pubmark_record::store::RunFolder;

    use super::*;
    use crate::library::Library;

    fn criteria(filter: &str) -> Result<Criteria, Problem> {
        Criteria::of(&ListQuery { filter: Some(filter.to_owned()), ..ListQuery::default() })
    }

    #[test]
    fn each_order_can_be_turned() {
        let names = ["20260301-090507-one", "20260302-090507-two", "20260303-090507-three"];
        let order = |by: Sort, reverse: bool| -> Vec<String> {
            let root = tempfile::tempdir().unwrap();
            for name in names {
                let mut record = sample::record();
                record.run.name = name.to_owned();
                record.run.started_at = format!("2026-03-{}T09:05:07Z", &name[6..8]);
                RunFolder::at(&root.path().join(name)).unwrap().write_record(&record).unwrap();
            }
            let found = Library::default().list(root.path()).unwrap().results;
            let mut entries: Vec<RunEntry> = found.iter().map(|one| RunEntry::of_folder(one)).collect();
            sort(&mut entries, by, reverse);
            entries.into_iter().map(|entry| entry.id).collect()
        };
        let turned: Vec<&str> = names.into_iter().rev().collect();
        for (by, straight) in [(Sort::Oldest, &names[..]), (Sort::Newest, &turned)] {
            assert_eq!(order(by, false), straight, "{by:?}");
            let other: Vec<&str> = straight.iter().rev().copied().collect();
            assert_eq!(order(by, true), other, "{by:?} turned");
        }
    }

    #[test]
    fn a_finished_repetition_stays_listed_while_the_next_one_runs() {
        let place = tempfile::tempdir().unwrap();
        let (shared, id) = Shared::of_two_repetitions(place.path(), RunState::Running);
        std::fs::create_dir(shared.store.runs().join("two")).unwrap();
        shared.store.change(&id, |status| status.folders.push("two".to_owned())).unwrap();
        for filter in [None, Some("smart-home".to_owned())] {
            let found = page(&shared, &ListQuery { filter, ..ListQuery::default() }).unwrap();
            let [entry] = &found.runs[..] else { panic!("{:?}", found.runs) };
            assert_eq!(entry.id, id);
            assert_eq!(entry.headline.as_ref().map(|headline| headline.folder.as_str()), Some("one"));
        }
    }

    #[test]
    fn a_submission_without_a_result_is_listed_since_its_submission() {
        let place = tempfile::tempdir().unwrap();
        let (shared, id) = Shared::of_two_repetitions(place.path(), RunState::Failed);
        let entry = shared.store.change(&id, |status| status.folders.clear()).unwrap().unwrap();
        let listed = |since: &str| -> bool {
            let query = ListQuery { since: Some(since.to_owned()), ..ListQuery::default() };
            page(&shared, &query).unwrap().runs.iter().any(|entry| entry.id == id)
        };
        assert!(listed(&entry.submitted.submitted_at));
        assert!(!listed("9999-01-01"));
        let wrong = ListQuery { since: Some("yesterday".to_owned()), ..ListQuery::default() };
        assert_eq!(page(&shared, &wrong).unwrap_err().status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_tag_is_a_word_of_the_filter() {
        let both = criteria("mosquitto tag=Lab  verdict=valid").unwrap();
        assert_eq!(both.tags, ["lab"]);
        assert!(!both.is_empty() && criteria("   ").unwrap().is_empty());
        assert!(criteria("sistem=x").is_err());
        assert!(!criteria(r#""quoted' <b>"#).unwrap().is_empty());
    }
}
