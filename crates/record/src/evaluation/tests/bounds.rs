//! What pubmark may have made worse decides nothing.

use super::*;

#[test]
fn a_latency_without_a_lower_bound_has_a_caution() {
    let mut cells = [cell("fast", &[], &[100.0, 104.0, 98.0]), cell("slow", &[], &[300.0, 310.0, 305.0])];
    for run in &mut cells[1].runs {
        let lower = run.record.latency.total.as_mut().unwrap().lower.as_mut().unwrap();
        (lower.p50, lower.p99) = (Some(0.0), Some(0.0));
    }
    let told = "the whole latency p99 of slow may be pubmark's delay or that of its client library: its lower bound is 0, so nothing \
                is proven to be faster by it";
    let is_told = |cells: &[CellInput]| {
        let cautions = evaluate(&systems(), 1, cells).unwrap().cautions;
        cautions.iter().any(|caution| caution == told)
    };
    assert!(is_told(&cells));
    cells[1].runs[0].record.latency.total.as_mut().unwrap().lower.as_mut().unwrap().p99 = Some(200.0);
    assert!(!is_told(&cells), "one run has a lower bound");
    cells[1].runs[0].record.latency.total.as_mut().unwrap().lower.as_mut().unwrap().p99 = Some(0.0);
    assert!(is_told(&cells) && !is_told(&cells[1..]), "nothing is compared with one cell alone");
}

#[test]
fn a_rate_that_may_be_pubmarks_limit_is_not_shown_to_be_lower() {
    let mut cells = [cell("fast", &[], &[100.0; 3]), cell("slow", &[], &[300.0; 3])];
    for (cell, rate) in cells.iter_mut().zip([2_000.0, 1_000.0]) {
        for run in &mut cell.runs {
            (run.record.settings.flood, run.record.throughput.delivered_per_s) = (true, rate);
        }
    }
    let (code, status) = ("V04".to_owned(), VerdictStatus::Suspect);
    let limited = vec![Reason { code, status, text: String::new(), hint: String::new() }];
    cells[0].runs[0].record.verdict.reasons = limited.clone();
    let found = evaluate(&systems(), 1, &cells).unwrap();
    assert_eq!(contest(&found, "delivered rate").winner.as_deref(), Some("fast"), "it may be better still");
    assert_eq!(found.cautions, Vec::<String>::new());
    cells[1].runs[0].record.verdict.reasons = limited;
    let found = evaluate(&systems(), 1, &cells).unwrap();
    let rate = contest(&found, "delivered rate");
    assert_eq!((&rate.winner, rate.duels[0].grade()), (&None, Grade::NotShown));
    let [told] = &found.cautions[..] else { panic!("one caution: {:?}", found.cautions) };
    let caution = "the delivered rate of slow may be higher than what was measured: ";
    assert!(told.starts_with(caution), "{told}");
    // The same of a run that was left out for it, and replaced.
    cells[1].runs[0].record.verdict.reasons = vec![];
    let outcome = |cells: &[CellInput]| {
        let found = evaluate(&systems(), 1, cells).unwrap();
        let cautions = found.cautions.iter().filter(|told| told.starts_with(caution)).count();
        let rate = contest(&found, "delivered rate");
        (rate.winner.clone(), rate.duels[0].grade(), cautions)
    };
    cells[1].failures = vec![failure(FailureKind::Invalid)];
    assert_eq!(outcome(&cells), (Some("fast".to_owned()), Grade::Proven, 0), "another reason");
    cells[1].failures = vec![failure(FailureKind::GeneratorLimited)];
    assert_eq!(outcome(&cells), (None, Grade::NotShown, 1));
    cells.swap(0, 1);
    cells[0].failures = vec![];
    cells[1].failures = vec![failure(FailureKind::GeneratorLimited)];
    assert_eq!(outcome(&cells), (Some("fast".to_owned()), Grade::Proven, 0), "it may be better still");
}

/// Two systems of which one delivers 90 % in its runs, all of which are floods or not.
fn lossy(flood: bool) -> [CellInput; 2] {
    let mut cells = [cell("fast", &[], &[100.0; 3]), cell("slow", &[], &[100.0; 3])];
    cells.iter_mut().flat_map(|cell| &mut cell.runs).for_each(|run| run.record.settings.flood = flood);
    for run in &mut cells[1].runs {
        let books = &mut run.record.delivery.messages;
        (books.delivered, books.lost, books.unknown) = (9_000, 900, 100);
    }
    cells
}

#[test]
fn a_loss_that_pubmark_or_the_machine_may_have_caused_is_not_proven() {
    let winner = |flood: bool, code: &str| {
        let mut cells = lossy(flood);
        for run in &mut cells[1].runs {
            let (code, status) = (code.to_owned(), VerdictStatus::Suspect);
            run.record.verdict.reasons = vec![Reason { code, status, text: String::new(), hint: String::new() }];
        }
        let found = evaluate(&systems(), 1, &cells).unwrap();
        let delivered = contest(&found, "delivered");
        assert!((delivered.duels[0].difference + 0.1).abs() < 1e-9, "{flood} {code}: {delivered:?}");
        delivered.winner.clone()
    };
    let fast = Some("fast".to_owned());
    for code in ["V02", "V04", "V06", "V18", "V28"] {
        assert_eq!(winner(true, code), None, "{code}");
    }
    assert_eq!(winner(true, "V10"), fast);
    assert_eq!((winner(false, "V02"), winner(false, "V04")), (None, fast), "a load of which all would have been read");
}

#[test]
fn the_share_delivered_of_floods_of_which_runs_were_replaced_is_not_shown_to_be_lower() {
    let outcome = |flood: bool, kind: FailureKind| {
        let mut cells = lossy(flood);
        cells[1].failures = vec![failure(kind)];
        let found = evaluate(&systems(), 1, &cells).unwrap();
        let caution = "the share delivered of slow may be higher than what was measured: ";
        let cautions = found.cautions.iter().filter(|told| told.starts_with(caution)).count();
        (contest(&found, "delivered").winner.clone(), cautions)
    };
    assert_eq!(outcome(true, FailureKind::GeneratorLimited), (None, 1));
    assert_eq!(outcome(true, FailureKind::Invalid), (Some("fast".to_owned()), 0));
    assert_eq!(outcome(false, FailureKind::GeneratorLimited), (Some("fast".to_owned()), 0));
}

#[test]
fn messages_that_a_client_library_may_have_dropped_prove_no_loss() {
    let mut cells = [cell("fast", &[], &[100.0; 3]), cell("slow", &[], &[100.0; 3])];
    let winner = |library_datagrams: u64| {
        for run in &mut cells[1].runs {
            let delivery = &mut run.record.delivery;
            (delivery.messages.delivered, delivery.messages.lost) = (9_000, 1_000);
            delivery.own_drops.library_datagrams = Some(library_datagrams);
        }
        let found = evaluate(&systems(), 1, &cells).unwrap();
        let delivered = contest(&found, "delivered");
        // The difference is that of the means that are shown.
        let difference = delivered.duels[0].difference;
        assert!((difference + 0.1).abs() < 1e-9, "{library_datagrams}: {difference}");
        delivered.winner.clone()
    };
    assert_eq!([0, 10, 1_000].map(winner), [Some("fast".to_owned()), Some("fast".to_owned()), None]);
}
