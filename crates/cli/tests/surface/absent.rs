//! An experiment names the cells that are not possible here and continues with the others: a missing system never ends
//! it.

use std::fs;

use crate::call::call_in;

/// The output of `--dry-run` for an experiment with these axes.
fn planned(axes: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("name: mine\ntitle: t\nworkload: hello\nduration: 5s\naxes:\n{axes}");
    fs::write(folder.path().join("mine.yaml"), file).unwrap();
    call_in(folder.path(), &["experiment", "mine.yaml", "--dry-run"])
}

#[test]
fn what_a_system_cannot_be_asked_for_leaves_out_its_cells_alone() {
    let cases = [
        ("  system: [builtin, zenoh-peers]\n  qos: 0\n  limit: [none, \"cpu=0.5\"]\n", "`--limit` is for a broker"),
        (
            "  system: [builtin, zenoh-peers]\n  qos: 0\n  fault: [none, \"kill:at=1s,for=1s\"]\n",
            "`kill` breaks a broker",
        ),
        (
            "  system: [builtin, zenoh-peers]\n  qos: 0\n  fault: [none, \"reset:at=1s,for=1s\"]\n",
            "`reset` breaks connections",
        ),
    ];
    for (axes, why) in cases {
        let text = planned(axes);
        assert!(text.ends_with("[exit code 0]\n"), "{text}");
        assert!(text.contains("cells       4, 1 of them not possible"), "{text}");
        assert!(text.contains("not offered: ") && text.contains(why), "{text}");
    }
}

#[test]
fn where_no_cell_can_be_run_each_is_named() {
    let text = planned("  system: [zenoh-peers, dds]\n  qos: 0\n  limit: \"cpu=0.5\"\n");
    assert!(text.contains("cells       2, 2 of them not possible"), "{text}");
    assert!(text.contains("`zenoh-peers` has none") && text.contains("`dds` has none"), "{text}");
}
