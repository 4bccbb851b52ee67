//! Checks as JUnit XML for continuous integration, one test case per check.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use pubmark_record::check::{Checked, Outcome, Row};

/// All checks as one report with one suite. A figure that was not measured is an error and not a failure, because its
/// outcome is unknown. An undecided check is skipped, with the interval in its message.
pub fn xml(checked: &Checked) -> Result<String, SerializeError> {
    let mut suite = TestSuite::new(checked.subject.clone());
    suite.add_test_cases(checked.rows.iter().map(case));
    let mut report = Report::new("pubmark check");
    report.add_test_suite(suite);
    report.to_string()
}

fn case(row: &Row) -> TestCase {
    let mut status = match row.outcome {
        Outcome::Passed | Outcome::Warned => TestCaseStatus::success(),
        Outcome::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Outcome::NotMeasured => TestCaseStatus::non_success(NonSuccessKind::Error),
        Outcome::Undecided => TestCaseStatus::skipped(),
    };
    if row.outcome != Outcome::Passed && row.outcome != Outcome::Warned {
        status.set_message(row.detail.clone()).set_type(row.kind.name());
    }
    let mut case = TestCase::new(row.name.clone(), status);
    case.set_classname(if row.cell.is_empty() { row.kind.name().to_owned() } else { row.cell.clone() });
    if matches!(row.outcome, Outcome::Passed | Outcome::Warned) {
        case.set_system_out(row.detail.clone());
    }
    case
}
