//! A plan as it is sent to a worker process: everything that cannot be computed from the rest.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pubmark_model::fleet::Fleet;
use pubmark_model::placement::Copies;
use pubmark_protocol::endpoint::Tls;
use pubmark_protocol::network::Network;
use serde::{Deserialize, Serialize};

use crate::endpoints::Endpoints;
use crate::plan::{Networks, RunPlan};

/// The task of a worker process.
#[derive(Serialize, Deserialize)]
pub(super) struct WorkerTask {
    /// Names of the adapters of devices and of subscribers.
    pub adapter_names: [String; 2],
    /// Its shards, by their index in the run.
    pub shards: Vec<u32>,
    /// The access network that it must set up first.
    pub access: Option<Vec<u8>>,
    plan: RunPlan,
    /// Copies of each group in the plan's fleet.
    copies: Copies,
    /// Contents of the files of certificates and keys that the plan names, by path; empty for a process of this
    /// machine, which reads the files itself. They include private keys.
    files: Vec<(PathBuf, Vec<u8>)>,
}

/// The network that a worker process was started in: every thread is already inside it.
#[derive(Debug)]
struct Entered;

impl Network for Entered {
    fn within(&self, make: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        make()
    }
}

impl WorkerTask {
    /// The task for these shards of a plan. A process on a node gets the contents of the plan's files.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn new(
        plan: &RunPlan,
        adapter_names: [String; 2],
        shards: Vec<u32>,
        access: Option<Vec<u8>>,
    ) -> io::Result<WorkerTask> {
        let files = if plan.on_nodes { contents(plan)? } else { vec![] };
        Ok(WorkerTask { adapter_names, shards, access, plan: plan.clone(), copies: plan.fleet.copies().clone(), files })
    }

    /// The files of the order in memory, under paths at which this process reads them.
    ///
    /// # Errors
    /// There is no memory for a file.
    pub fn files(&self) -> io::Result<Vec<MemoryFile>> {
        self.files.iter().map(|(path, content)| MemoryFile::new(path, content)).collect()
    }

    /// The plan of the run, with its fleet computed again, with networks that this process is already inside, and with
    /// these files in place of those of the machine that leads the run.
    pub fn plan(&self, files: &[MemoryFile]) -> RunPlan {
        let Networks { devices, subscribers, .. } = self.plan.networks.clone();
        let networks = devices.iter().chain(&subscribers).flatten().max().map_or(0, |last| usize::from(*last) + 1);
        let entered: Arc<dyn Network> = Arc::new(Entered);
        RunPlan {
            fleet: Arc::new(Fleet::of_copies(&self.plan.workload, &self.copies)),
            networks: Networks { all: vec![entered; networks].into(), devices, subscribers },
            publish_at: here(&self.plan.publish_at, files),
            subscribe_at: here(&self.plan.subscribe_at, files),
            ..self.plan.clone()
        }
    }
}

/// A file that exists in the memory of this process only, and ends with it, however it ends.
pub(super) struct MemoryFile {
    /// Its path on the machine that leads the run.
    original: PathBuf,
    file: File,
}

impl MemoryFile {
    fn new(original: &Path, content: &[u8]) -> io::Result<MemoryFile> {
        // SAFETY: the name ends with a zero byte. The descriptor is checked below and has no other owner.
        let raw = unsafe { libc::memfd_create(c"pubmark-file".as_ptr(), libc::MFD_CLOEXEC) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created.
        let mut file = unsafe { File::from_raw_fd(raw) };
        file.write_all(content)?;
        Ok(MemoryFile { original: original.to_owned(), file })
    }

    /// The path at which this process can open it, until it is dropped.
    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

/// Paths of the files of certificates and keys at an endpoint.
fn paths(tls: &mut Tls) -> impl Iterator<Item = &mut PathBuf> {
    let Tls { authorities, identity, .. } = tls;
    let identity = identity.iter_mut().flat_map(|identity| [&mut identity.certificate, &mut identity.key]);
    authorities.iter_mut().chain(identity)
}

/// Contents of the files that a plan names, each once.
fn contents(plan: &RunPlan) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let endpoints = plan.publish_at.endpoints().iter().chain(plan.subscribe_at.endpoints().iter());
    let mut all = BTreeMap::new();
    for mut tls in endpoints.filter_map(|endpoint| endpoint.tls.clone()) {
        for path in paths(&mut tls) {
            if !all.contains_key(&*path) {
                let content = fs::read(&*path).map_err(|error| {
                    io::Error::new(error.kind(), format!("failed to read `{}`: {error}", path.display()))
                })?;
                all.insert(path.clone(), content);
            }
        }
    }
    Ok(all.into_iter().collect())
}

/// The same endpoints with files of this process.
fn here(endpoints: &Endpoints, files: &[MemoryFile]) -> Endpoints {
    let replaced = endpoints.replaced(|endpoint| {
        let mut endpoint = endpoint.clone();
        for path in endpoint.tls.iter_mut().flat_map(paths) {
            if let Some(file) = files.iter().find(|file| file.original == *path) {
                *path = file.path();
            }
        }
        Ok::<_, Infallible>(endpoint)
    });
    let Ok(replaced) = replaced;
    replaced
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_protocol::endpoint::{Endpoint, Identity};

    use super::*;

    #[test]
    fn files_of_another_machine_are_read_from_memory_as_often_as_needed() {
        let [key, other] = ["/nowhere/key.pem", "/nowhere/other.pem"].map(PathBuf::from);
        let file = MemoryFile::new(&key, b"a secret").unwrap();
        let identity = Identity { certificate: other.clone(), key: key.clone() };
        let endpoint = Endpoint {
            shown: String::new(),
            address: ([127, 0, 0, 1], 8_883).into(),
            tls: Some(Tls { server_name: String::new(), authorities: Some(key), identity: Some(identity) }),
            credentials: None,
            upgrade: None,
            settings: None,
        };
        let found = here(&Endpoints::one(endpoint), &[file]);
        let tls = found.endpoints()[0].tls.clone().unwrap();
        assert_eq!(tls.identity.as_ref().unwrap().certificate, other, "it is not among the files");
        let paths = [tls.authorities.unwrap(), tls.identity.unwrap().key];
        assert!(paths.iter().all(|path| path.starts_with("/proc/self/fd")), "{paths:?}");
    }

    #[test]
    fn a_file_in_memory_has_no_name_on_a_disk() {
        let file = MemoryFile::new(Path::new("/nowhere/key.pem"), b"a secret").unwrap();
        for _ in 0..2 {
            assert_eq!(fs::read(file.path()).unwrap(), b"a secret");
        }
        let shown = fs::read_link(file.path()).unwrap();
        assert!(shown.to_string_lossy().starts_with("/memfd:pubmark-file"), "{}", shown.display());
    }
}
