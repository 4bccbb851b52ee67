//! Features of the image that `make image` builds.

use std::collections::BTreeSet;

/// Features that the documents promise for the image: a server and its metrics (docs/how-to/run-in-containers.md),
/// nodes of a run (docs/how-to/deploy-with-an-orchestrator.md).
const PROMISED: [&str; 3] = ["serve", "cluster", "mqtt"];

#[test]
fn the_image_is_built_with_what_the_documents_promise() {
    let makefile = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Makefile")).unwrap();
    let list = makefile.lines().find_map(|line| line.strip_prefix("IMAGE_FEATURES := ")).expect("a list of features");
    let features: BTreeSet<&str> = list.split(',').map(str::trim).collect();
    assert!(makefile.contains("--no-default-features --features $(IMAGE_FEATURES)"), "the list is used");
    for promised in PROMISED {
        assert!(features.contains(promised), "the image lacks `{promised}`: {list}");
    }
    let metadata = super::metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let cli = packages.iter().find(|package| package["name"] == "pubmark-cli").expect("the command");
    for feature in features {
        assert!(cli["features"][feature].is_array(), "there is no feature `{feature}`");
    }
    // The command `serve` exists only with this feature.
    let brings: Vec<&str> =
        cli["features"]["serve"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
    assert!(brings.contains(&"dep:pubmark-serve"), "{brings:?}");
}
