//! Outcomes of deletions: nothing to delete is a success.

use std::io;
use std::path::Path;

use super::StoreError;

/// The outcome of a removal, which succeeded as well if there was nothing to remove.
pub(super) fn unless_gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// The same of the deletion of this path, with an error that names it.
pub(crate) fn deleted(path: &Path, outcome: io::Result<()>) -> Result<(), StoreError> {
    unless_gone(outcome).map_err(|source| StoreError::File { action: "delete", path: path.to_owned(), source })
}
