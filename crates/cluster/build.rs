//! Generates the stubs of the only service. Its messages are structs with explicit tags (src/messages.rs): only pubmark
//! uses this protocol, and a compiler for .proto files would add about thirty crates to the build.
//!
//! Computes the fingerprint by which coordinator and nodes find that they were built from the same sources.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Crates beside this one that decide what a node sends and when, how it counts, and how it starts and observes systems.
const CRATES: [&str; 13] = [
    "adapters",
    "cluster",
    "cyclone",
    "engine",
    "links",
    "metrics",
    "model",
    "protocol",
    "protocols",
    "record",
    "runner",
    "systems",
    "wire",
];

fn main() -> io::Result<()> {
    generate_stubs();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=PUBMARK_SOURCES={}", fingerprint()?);
    Ok(())
}

fn generate_stubs() {
    let attend = tonic_build::manual::Method::builder()
        .name("attend")
        .route_name("Attend")
        .comment("A node attends runs until either end says goodbye.")
        .input_type("crate::messages::FromNode")
        .output_type("crate::messages::ToNode")
        .codec_path("tonic_prost::ProstCodec")
        .client_streaming()
        .server_streaming()
        .build();
    let service = tonic_build::manual::Service::builder()
        .name("Control")
        .package("pubmark")
        .comment("Runs on several machines.")
        .method(attend)
        .build();
    tonic_build::manual::Builder::new().compile(&[service]);
}

/// FNV-1a (64 bits, hexadecimal) of the names and contents of the sources, in the order of their names, and of the versions of
/// dependencies. It depends on neither the machine nor the place of the checkout. Empty where the other crates or the lock file are not
/// beside this crate.
fn fingerprint() -> io::Result<String> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let (crates, lock) = (here.join(".."), here.join("../../Cargo.lock"));
    if !lock.is_file() || !CRATES.iter().all(|name| crates.join(name).join("src").is_dir()) {
        return Ok(String::new());
    }
    println!("cargo::rerun-if-changed={}", lock.display());
    let mut files = vec![("Cargo.lock".to_owned(), lock)];
    for name in CRATES {
        let folder = crates.join(name);
        let source = folder.join("src");
        println!("cargo::rerun-if-changed={}", source.display());
        find(&source, &format!("{name}/src"), &mut files)?;
        // Sources beside `src`: the manifest, which selects features, and messages that C code is generated from.
        for file in ["Cargo.toml", "message.idl"] {
            let path = folder.join(file);
            if path.is_file() {
                println!("cargo::rerun-if-changed={}", path.display());
                files.push((format!("{name}/{file}"), path));
            }
        }
    }
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for (name, path) in files {
        let text = fs::read(path)?;
        for part in [name.as_bytes(), &(text.len() as u64).to_le_bytes(), &text] {
            hash = fnv_1a(hash, part);
        }
    }
    Ok(format!("{hash:016x}"))
}

/// Adds the sources in a folder and those below it, each with its name from the folder of all crates. Hidden files are left out: editors
/// lock a file by a symbolic link beside it that leads nowhere.
fn find(folder: &Path, name: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{name}/{file}");
        let is_source = path.extension().is_some_and(|ending| ending == "rs" || ending == "c" || ending == "idl");
        if file.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            find(&path, &name, files)?;
        } else if is_source && path.is_file() {
            files.push((name, path));
        }
    }
    Ok(())
}

/// <http://www.isthe.com/chongo/tech/comp/fnv/>
fn fnv_1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
