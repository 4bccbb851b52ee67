//! Writing the files of a deployment to a folder, with private keys among them, and the commands to type next.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use pubmark_runner::{ErrorKind, RunError};

use crate::{COLLECT_LIMIT, Cluster, Deployment, Kind, RESULTS, archive};

impl Deployment {
    /// Writes the files into a folder, and returns their paths; the first one is the file that the orchestrator reads.
    ///
    /// # Errors
    /// A file exists already, the folder has results of an earlier run where those of this one may come, other users could read
    /// keys in it, or it cannot be written.
    pub fn write(&self, out: &Path) -> Result<Vec<PathBuf>, RunError> {
        let files = self.files();
        let paths: Vec<PathBuf> = files.iter().map(|(name, _)| out.join(name)).collect();
        if let Some(path) = paths.iter().find(|path| path.exists()) {
            return Err(RunError::input(format!("`{}` is there already", path.display()))
                .hint("`--out` names another folder; certificates are made anew each time"));
        }
        // `--apply --wait` copies the results into the folder, after the whole run.
        if let Some(path) = archive::earlier_results(out).filter(|_| self.kind == Kind::Kubernetes) {
            return Err(RunError::input(format!("`{}` has results of an earlier run", path.display()))
                .hint("`--out` names another folder, for the results of this run"));
        }
        self.make_folder(out)?;
        for (path, (name, text)) in paths.iter().zip(&files) {
            // Files that Compose mounts must be readable for the container's user. The permissions of the folder protect
            // them from other users.
            let mode = if self.kind == Kind::Compose && name.contains('/') { 0o644 } else { 0o600 };
            make_subfolders(out, name).and_then(|()| write_with_mode(path, text, mode)).map_err(|error| {
                RunError::from_error(ErrorKind::Input, &error).during(format!("failed to write `{}`", path.display()))
            })?;
        }
        Ok(paths)
    }

    /// Creates a folder that no other user can read. An existing folder is not changed, and is refused if other users could
    /// read keys in it.
    fn make_folder(&self, folder: &Path) -> Result<(), RunError> {
        let shown = folder.display();
        let failed = |error: io::Error| {
            RunError::from_error(ErrorKind::Input, &error).during(format!("failed to make `{shown}`"))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let mode = fs::metadata(folder).map_err(failed)?.permissions().mode();
        if self.kind == Kind::Compose && mode & 0o077 != 0 {
            return Err(RunError::input(format!(
                "others can look into `{shown}`, and private keys are to be written there"
            ))
            .hint(format!("`chmod 700 {shown}`, or `--out` with a folder that is not there yet")));
        }
        Ok(())
    }

    /// The commands to execute the run with the files in this folder, and to get its results.
    pub fn next(&self, out: &Path) -> String {
        let folder = out.display();
        match self.kind {
            Kind::Compose => format!(
                "\nnext  docker compose --project-directory {folder} up --abort-on-container-exit\n      \
                 docker compose --project-directory {folder} logs --no-log-prefix coordinator > record.json\n"
            ),
            Kind::Kubernetes => {
                let cluster = Cluster { context: None, namespace: self.namespace.clone() };
                let (kubectl, collection) = (cluster.kubectl(), self.collection(&cluster, out, ""));
                format!("\nnext  {kubectl} create -f {folder}/pubmark.yaml\n{collection}")
            }
        }
    }

    /// The commands to follow a run that was created in this cluster, to get its results and to delete it.
    pub fn next_of_created(&self, out: &Path, cluster: &Cluster) -> String {
        let (kubectl, job) = (cluster.kubectl(), self.part("coordinator"));
        let minutes = COLLECT_LIMIT.as_secs() / 60;
        format!(
            "created job/{job}; it keeps the results for {minutes} minutes after the run\n\n\
             log   {kubectl} logs --follow job/{job}\n{}",
            self.collection(cluster, out, "next  ")
        )
    }

    /// The commands to wait for the coordinator's pod, to get the results and to delete the run. The first line begins with
    /// `head`.
    fn collection(&self, cluster: &Cluster, out: &Path, head: &str) -> String {
        let (kubectl, out) = (cluster.kubectl(), out.display());
        let job = format!("job/{}", self.part("coordinator"));
        let pod = format!("app.kubernetes.io/instance={},app.kubernetes.io/component=coordinator", self.instance);
        format!(
            "{head:6}{kubectl} wait --for=create --timeout=1m pod -l {pod} && \
             {kubectl} wait --for=condition=Ready --timeout=10m pod -l {pod}\n      \
             {kubectl} exec {job} -- pubmark pod send --results {RESULTS} > results.tar\n      \
             {kubectl} exec {job} -- pubmark pod release --results {RESULTS}\n      \
             {kubectl} delete -f {out}/pubmark.yaml\n"
        )
    }
}

/// Creates the folders of a file below `out`. Every user can open files in them, whatever the umask of the process is: a
/// container sees these folders, and not `out`, which protects them. Existing ones are not changed.
fn make_subfolders(out: &Path, name: &str) -> io::Result<()> {
    let mut folder = out.to_owned();
    for part in Path::new(name).parent().into_iter().flat_map(Path::components) {
        folder.push(part);
        match fs::create_dir(&folder) {
            Ok(()) => fs::set_permissions(&folder, Permissions::from_mode(0o755))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Creates a file with these permissions, whatever the umask of the process is; nobody else can open it before they are set.
fn write_with_mode(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(mode))
}
