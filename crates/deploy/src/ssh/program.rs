//! The program that is copied to hosts, and whether a host can run it, according to its ELF header (System V ABI, gABI 4.1).

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use pubmark_runner::{ErrorKind, RunError};

/// Bytes of the file that are read: linkers write the program headers directly after the ELF header of 64 bytes.
const HEADER: u64 = 8 << 10;
/// `e_machine` of the supported processors, with the name that `uname -m` prints.
const MACHINES: [(u16, &str); 3] = [(62, "x86_64"), (183, "aarch64"), (243, "riscv64")];
/// Type of the program header that names a dynamic linker.
const PT_INTERP: u32 = 3;

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Path of its file.
    pub path: PathBuf,
    /// Its size, bytes.
    pub bytes: u64,
    /// Its processor, as `uname -m` prints it; `None` if it is not one of the supported ones.
    pub machine: Option<&'static str>,
    /// The program needs shared libraries of the host.
    pub is_dynamic: bool,
}

impl Program {
    /// Reads the program in a file, or the running one if `path` is `None`.
    ///
    /// # Errors
    /// The file cannot be read, or is no program for Linux.
    pub fn read(path: Option<&Path>) -> Result<Program, RunError> {
        let path = path.map_or_else(std::env::current_exe, |path| Ok(path.to_owned()));
        let path = path.map_err(|error| {
            RunError::from_error(ErrorKind::Internal, &error).during("failed to find the program that is running")
        })?;
        let failed = |error: io::Error| {
            RunError::from_error(ErrorKind::Input, &error)
                .during(format!("failed to read the program `{}`", path.display()))
                .hint("`--program` names a build of pubmark of this version")
        };
        let file = File::open(&path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let mut header = vec![];
        file.take(HEADER).read_to_end(&mut header).map_err(failed)?;
        let (machine, is_dynamic) = of_header(&header)
            .ok_or_else(|| failed(io::Error::new(io::ErrorKind::InvalidData, "it is no 64-bit ELF program")))?;
        Ok(Program { path, bytes, machine, is_dynamic })
    }

    /// The reason why a host cannot run it, if the host's properties show one.
    pub fn unfit(&self, system: &str, machine: &str) -> Option<String> {
        if system != "Linux" {
            return Some(format!("it runs {system}, and nodes run on Linux"));
        }
        let own = self.machine.filter(|own| *own != machine)?;
        Some(format!("its processor is {machine}, and the program is for {own} (`--program` copies another build)"))
    }

    /// Advice for a host that has the right properties but still cannot run the program.
    pub fn hint(&self) -> &'static str {
        match self.is_dynamic {
            true => {
                "this program needs shared libraries of the host: `make image` leaves a static one in target/image/root/bin, for `--program`"
            }
            false => "`--host-folder` names a folder on hosts from which programs may be run",
        }
    }
}

/// Reads the ELF header: the processor, and whether the program has a dynamic linker.
fn of_header(header: &[u8]) -> Option<(Option<&'static str>, bool)> {
    // ELF, 64-bit, little-endian.
    if !header.starts_with(&[0x7f, b'E', b'L', b'F', 2, 1]) {
        return None;
    }
    let number = |at: usize, length: usize| {
        let bytes = header.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let machine = number(18, 2)? as u16;
    let (first, size, count) = (number(32, 8)? as usize, number(54, 2)? as usize, number(56, 2)? as usize);
    let kind = |entry: usize| number(first.checked_add(entry * size)?, 4);
    let is_dynamic = (0..count).any(|entry| kind(entry) == Some(PT_INTERP.into()));
    let machine = MACHINES.iter().find(|(code, _)| *code == machine).map(|(_, name)| *name);
    Some((machine, is_dynamic))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A header with one program header of this type.
    fn header(machine: u16, kind: u32) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64..68].copy_from_slice(&kind.to_le_bytes());
        bytes
    }

    #[test]
    fn a_header_says_the_processor_and_whether_libraries_are_needed() {
        assert_eq!(of_header(&header(62, PT_INTERP)), Some((Some("x86_64"), true)));
        assert_eq!(of_header(&header(183, 1)), Some((Some("aarch64"), false)));
        assert_eq!(of_header(&header(9, 1)), Some((None, false)));
        assert_eq!(of_header(b"#!/bin/sh\n"), None);
        // A header that is cut off, or has sizes beyond its end.
        assert_eq!(of_header(&header(62, PT_INTERP)[..40]), None);
        let mut wild = header(62, PT_INTERP);
        wild[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(of_header(&wild), Some((Some("x86_64"), false)));
    }

    #[test]
    fn a_host_with_another_processor_is_unfit() {
        let program = Program::read(None).unwrap();
        assert!(program.bytes > 1_000 && program.machine.is_some(), "{program:?}");
        assert_eq!(program.unfit("Linux", program.machine.unwrap()), None);
        assert!(program.unfit("Linux", "armv7l").unwrap().contains("its processor is armv7l"));
        assert!(program.unfit("Darwin", "arm64").unwrap().contains("it runs Darwin"));
    }
}
