//! The library itself: loaded once, at its first use, and never unloaded, as its threads may run its code.

use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::raw::{Functions, ReturnCode};

/// File names of version 0.10: Debian's, and that of its own build. A later version has another name.
const NAMES: [&CStr; 2] = [c"libddsc.so.0debian", c"libddsc.so.0"];
/// A function that exists since 0.10, whose type descriptors differ from those of earlier versions.
const SINCE_0_10: &CStr = c"dds_create_topic_descriptor";

/// The library, loaded.
pub struct Library {
    pub(crate) functions: Functions,
}

/// Why the library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// It is not installed.
    #[error("failed to load Cyclone DDS: {0}")]
    NotFound(String),
    /// It is another version.
    #[error("failed to use the Cyclone DDS that is installed: it has no `{0}`, version 0.10 has")]
    OtherVersion(&'static str),
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to {what}: {words}")]
pub struct CallError {
    /// What was tried.
    pub what: &'static str,
    /// The library's text for its error code.
    pub words: String,
}

/// The library. There is one for the whole process, because its domains belong to the whole process.
///
/// # Errors
/// It is not installed, or not version 0.10.
pub fn library() -> Result<&'static Library, &'static Missing> {
    static LOADED: OnceLock<Result<Library, Missing>> = OnceLock::new();
    LOADED.get_or_init(load).as_ref()
}

fn load() -> Result<Library, Missing> {
    let mut why = String::new();
    for name in NAMES {
        // SAFETY: the name is a C string; the library's initialisers are those of an ordinary system library.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let Some(handle) = NonNull::new(handle) else {
            why = last_error();
            continue;
        };
        // SAFETY: `handle` is an open library, the symbol's name a C string.
        let symbol = |symbol: &CStr| NonNull::new(unsafe { libc::dlsym(handle.as_ptr(), symbol.as_ptr()) });
        if symbol(SINCE_0_10).is_none() {
            return Err(Missing::OtherVersion("dds_create_topic_descriptor"));
        }
        // SAFETY: a library of this name with that function is version 0.10, whose header the types are from.
        let functions = unsafe { Functions::find(symbol) }.map_err(Missing::OtherVersion)?;
        return Ok(Library { functions });
    }
    Err(Missing::NotFound(why))
}

fn last_error() -> String {
    // SAFETY: the text, if there is one, is a C string that stays until this thread's next call of the loader's.
    unsafe {
        let text: *const libc::c_char = libc::dlerror();
        if text.is_null() {
            "it is not installed".to_owned()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

impl Library {
    /// Its version from the name of its file (`libddsc.so.0.10.2`): the library has no function that returns it. Otherwise `0.10`.
    pub fn version(&self) -> String {
        let known = "0.10".to_owned();
        let Some(file) = self.file() else { return known };
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.strip_prefix("libddsc.so.").filter(|version| version.starts_with("0.10")).map_or(known, str::to_owned)
    }

    /// The file that it was loaded from.
    fn file(&self) -> Option<PathBuf> {
        // SAFETY: all zero is a valid `Dl_info`, which the call fills for an address that is in the library.
        let name = unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            let address = self.functions.dds_create_domain as *const c_void;
            (libc::dladdr(address, &raw mut info) != 0 && !info.dli_fname.is_null())
                .then(|| CStr::from_ptr(info.dli_fname))?
        };
        std::fs::canonicalize(OsStr::from_bytes(name.to_bytes())).ok()
    }

    /// The result of a call: a handle or a count, or an error with the library's text.
    pub(crate) fn check(&self, what: &'static str, code: ReturnCode) -> Result<i32, CallError> {
        if code >= 0 {
            return Ok(code);
        }
        // SAFETY: the library returns a static text for every code.
        let words = unsafe {
            let text = (self.functions.dds_strretcode)(code);
            if text.is_null() { format!("code {code}") } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
        };
        Err(CallError { what, words })
    }
}
