//! The results of a coordinator's pod as a tar archive of its folder; the last entry is the exit code of the run.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use pubmark_record::store::RECORD_FILE;
use tar::{Archive, Builder};

/// Folder of the runs; each run has a subfolder.
pub const RUNS: &str = "runs";
/// Entry with the exit code of the run. It comes last: an archive without it was cut off.
pub const EXIT_CODE: &str = "exit-code";
/// Limit for the size of all files, bytes. A message log of 100 million rows has about 3 GB.
pub const MOST_BYTES: u64 = 16 << 30;
/// Limit for the number of files: 1,000 repetitions with 100 files each.
const MOST_FILES: usize = 100_000;

/// Content of an archive.
#[derive(Debug, PartialEq, Eq)]
pub struct Unpacked {
    /// Folders of the runs, in order of time.
    pub runs: Vec<PathBuf>,
    /// Exit code of the run.
    pub exit_code: i32,
}

/// Writes the runs in a folder, then the exit code. Links are left out.
///
/// # Errors
/// A file cannot be read, or `out` cannot be written, for instance because its reader has ended.
pub fn pack(folder: &Path, out: impl Write) -> io::Result<()> {
    let mut archive = Builder::new(out);
    archive.follow_symlinks(false);
    add(&mut archive, folder, Path::new(RUNS))?;
    archive.append_path_with_name(folder.join(EXIT_CODE), EXIT_CODE)?;
    archive.into_inner()?.flush()
}

fn add(archive: &mut Builder<impl Write>, folder: &Path, name: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let mut entries: Vec<_> = entries.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = name.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            add(archive, folder, &name)?;
        } else if kind.is_file() {
            archive.append_path_with_name(entry.path(), &name)?;
        }
    }
    Ok(())
}

/// Results of an earlier run in a folder, which [`unpack`] would not replace.
pub fn earlier_results(out: &Path) -> Option<PathBuf> {
    [out.join(RECORD_FILE), numbered(out, 1)].into_iter().find(|path| path.exists())
}

/// Folder of one of several runs; the first one has the number 1.
fn numbered(out: &Path, number: usize) -> PathBuf {
    out.join(format!("run-{number}"))
}

/// Extracts an archive: the files of one run into `out`, those of several runs into `out/run-1`, `out/run-2` and so on.
/// Existing files are not overwritten.
///
/// # Errors
/// The archive was cut off ([`io::ErrorKind::UnexpectedEof`]; nothing is written then), contains an entry that a pod does not
/// send, or its files cannot be written.
pub fn unpack(archive: &Path, out: &Path) -> io::Result<Unpacked> {
    let (names, exit_code) = check(archive)?;
    let folder_of = |name: &str| match names.iter().position(|known| known == name) {
        Some(number) if names.len() > 1 => numbered(out, number + 1),
        _ => out.to_owned(),
    };
    for entry in Archive::new(File::open(archive)?).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let Some((name, rest)) = of_run(&path) else { continue };
        let target = folder_of(name).join(rest);
        write(&mut entry, &target)
            .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", target.display())))?;
    }
    Ok(Unpacked { runs: names.iter().map(|name| folder_of(name)).collect(), exit_code })
}

/// Writes a file that is not there yet.
fn write(content: &mut impl Read, path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    io::copy(content, &mut OpenOptions::new().write(true).create_new(true).open(path)?).map(drop)
}

/// Checks an archive. Returns the names of the runs and the exit code.
fn check(archive: &Path) -> io::Result<(Vec<String>, i32)> {
    let (mut names, mut bytes, mut files, mut exit_code) = (BTreeSet::new(), 0, 0, None);
    for entry in Archive::new(File::open(archive)?).entries()? {
        let mut entry = entry.map_err(incomplete)?;
        let path = entry.path()?.into_owned();
        bytes += entry.size();
        files += 1;
        if bytes > MOST_BYTES || files > MOST_FILES || !entry.header().entry_type().is_file() || exit_code.is_some() {
            return Err(unusable(&path));
        }
        if path == Path::new(EXIT_CODE) {
            let mut text = String::new();
            entry.by_ref().take(16).read_to_string(&mut text)?;
            if (text.len() as u64) < entry.size().min(16) {
                return Err(cut_off());
            }
            exit_code = Some(text.trim().parse().map_err(|_| unusable(&path))?);
        } else {
            let (name, _) = of_run(&path).ok_or_else(|| unusable(&path))?;
            names.insert(name.to_owned());
        }
    }
    Ok((names.into_iter().collect(), exit_code.ok_or_else(cut_off)?))
}

/// The run that a file belongs to, and the file's path inside that run; `None` for a path that leads out of the archive.
fn of_run(path: &Path) -> Option<(&str, &Path)> {
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let below = path.strip_prefix(RUNS).ok().filter(|_| is_plain)?;
    let name = below.components().next()?.as_os_str();
    let rest = below.strip_prefix(name).ok().filter(|rest| !rest.as_os_str().is_empty())?;
    Some((name.to_str()?, rest))
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the archive of the results was cut off")
}

/// What `tar` cannot read as an archive has not arrived whole; an error of the file stays what it is.
fn incomplete(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::Other { cut_off() } else { error }
}

fn unusable(path: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the archive of the results has an unusable `{}`", path.display()),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A folder that is removed when the test ends.
    pub(crate) struct Folder(pub(crate) PathBuf);

    impl Folder {
        pub(crate) fn new() -> Folder {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("pubmark-archive-{}-{number}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        pub(crate) fn write(&self, name: &str, text: &str) {
            fs::create_dir_all(self.0.join(name).parent().unwrap()).unwrap();
            fs::write(self.0.join(name), text).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn packed(pod: &Folder) -> PathBuf {
        let file = pod.0.join("results.tar");
        pack(&pod.0, File::create(&file).unwrap()).unwrap();
        file
    }

    #[test]
    fn every_file_of_a_run_comes_back_and_links_do_not() {
        let (pod, here) = (Folder::new(), Folder::new());
        pod.write("runs/1-a/record.json", "{}");
        pod.write("runs/1-a/latency.hdr", "\u{0}bytes");
        pod.write("run.log", "not a result");
        symlink("1-a", pod.0.join("runs/latest")).unwrap();
        symlink("/etc/hostname", pod.0.join("runs/1-a/link")).unwrap();
        pod.write(EXIT_CODE, "5");
        let unpacked = unpack(&packed(&pod), &here.0).unwrap();
        assert_eq!(unpacked, Unpacked { runs: vec![here.0.clone()], exit_code: 5 });
        let mut found: Vec<_> = fs::read_dir(&here.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        found.sort();
        assert_eq!(found, ["latency.hdr", "record.json"]);
        assert_eq!(fs::read_to_string(here.0.join("latency.hdr")).unwrap(), "\u{0}bytes");
    }

    #[test]
    fn several_runs_have_a_folder_each() {
        let (pod, here) = (Folder::new(), Folder::new());
        pod.write("runs/1-a/record.json", "first");
        pod.write("runs/2-a/record.json", "second");
        pod.write(EXIT_CODE, "0");
        let unpacked = unpack(&packed(&pod), &here.0).unwrap();
        assert_eq!(unpacked.runs, [here.0.join("run-1"), here.0.join("run-2")]);
        assert_eq!(fs::read_to_string(here.0.join("run-2/record.json")).unwrap(), "second");
    }

    #[test]
    fn an_archive_that_was_cut_off_leaves_nothing() {
        let (pod, here) = (Folder::new(), Folder::new());
        pod.write("runs/1-a/record.json", &"x".repeat(4000));
        pod.write(EXIT_CODE, "0");
        let whole = fs::read(packed(&pod)).unwrap();
        // In a header, in a file, between two, before the exit code, and in what fills its block.
        for length in [0, 100, 512, 2000, 4608, 5120, 5121] {
            fs::write(pod.0.join("cut.tar"), &whole[..length]).unwrap();
            let error = unpack(&pod.0.join("cut.tar"), &here.0).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length}: {error}");
            assert_eq!(fs::read_dir(&here.0).unwrap().count(), 0, "{length}");
        }
    }

    #[test]
    fn nothing_is_written_elsewhere_or_over_something() {
        let (pod, here) = (Folder::new(), Folder::new());
        for name in ["../out", "runs/a/../../../out", "pubmark.yaml", "runs/file"] {
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            let mut archive = Builder::new(File::create(pod.0.join("bad.tar")).unwrap());
            archive.append(&header, &b"x"[..]).unwrap();
            archive.finish().unwrap();
            let error = unpack(&pod.0.join("bad.tar"), &here.0).unwrap_err();
            assert!(error.to_string().contains("unusable"), "{name}: {error}");
        }
        pod.write("runs/1-a/pubmark.yaml", "from the pod");
        pod.write(EXIT_CODE, "0");
        here.write("pubmark.yaml", "keys");
        let error = unpack(&packed(&pod), &here.0).unwrap_err();
        let path = here.0.join("pubmark.yaml");
        assert!(error.to_string().starts_with(&format!("`{}`: File exists", path.display())), "{error}");
        assert_eq!(fs::read_to_string(path).unwrap(), "keys");
    }
}
