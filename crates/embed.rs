// Included by build scripts that embed a folder of YAML files, so that a system or an experiment is added by its file alone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Writes `<folder>.rs` into the build's output: a slice of (name without ending, text) of each `*.yaml` of a folder at
/// the workspace's root, by name.
fn embed(folder: &str) -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..").canonicalize()?;
    println!("cargo::rerun-if-changed={}", root.join(folder).display());
    println!("cargo::rerun-if-changed={}", root.join("crates/embed.rs").display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(root.join(folder))?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let mut table = String::from("&[\n");
    for path in &files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(table, "    ({name:?}, include_str!({:?})),", path.display().to_string())
            .expect("a string takes text");
    }
    table.push_str("]\n");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join(folder).with_extension("rs"), table)
}
