//! The JUnit file, parsed as other programs do.

use std::fs;

use crate::call::call_in;
use crate::folders::{experiment, record, run};

#[test]
fn the_counts_of_the_suite_are_those_of_its_cases() {
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), "now", &[("a<b", &[800.0; 3]), ("mochi", &[2_000.0; 3]), ("nats", &[1_100.0; 3])], &[]);
    let require = "p99<1ms,memory_per_connection<1MB";
    let text = call_in(folder.path(), &["check", "now", "--require", require, "--junit", "out/checks.xml"]);
    assert!(text.ends_with("[exit code 3]\n"), "{text}");
    let xml = fs::read_to_string(folder.path().join("out/checks.xml")).unwrap();
    let report = quick_junit::Report::deserialize_from_str(&xml).unwrap();
    let suite = &report.test_suites[0];
    assert_eq!((suite.tests, suite.failures, suite.errors), (9, 1, 3), "{xml}");
    assert_eq!((report.tests, report.failures, report.errors), (9, 1, 3));
    assert_eq!(suite.test_cases.len(), 9);
    assert_eq!(xml.matches("<skipped message=\"0.88–1.1 ms, undecided").count(), 1, "{xml}");
    assert!(suite.test_cases.iter().any(|case| case.classname.as_ref().is_some_and(|name| name.as_str() == "a<b")));
    insta::assert_snapshot!("junit", xml);
}

#[test]
fn an_independent_reader_finds_it_well_formed() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), "now", &record(800.0));
    call_in(folder.path(), &["check", "now", "--require", "p99<1us,loss=0", "--junit", "checks.xml"]);
    let script = "import sys, xml.etree.ElementTree as tree\n\
                  root = tree.parse(sys.argv[1]).getroot()\n\
                  suite = root.find('testsuite')\n\
                  failed = [case for case in suite.iter('testcase') if case.find('failure') is not None]\n\
                  print(root.tag, root.get('tests'), root.get('failures'), suite.get('tests'), len(failed))";
    let file = folder.path().join("checks.xml");
    let output = match std::process::Command::new("python3").arg("-c").arg(script).arg(&file).output() {
        Ok(output) => output,
        Err(error) => {
            pubmark_testing::skip(format_args!("no python3 ({error})"));
            return;
        }
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "testsuites 3 1 3 1", "{output:?}");
}
