//! A specification as a file: read from YAML or JSON, and written beside each run, so that the folder of a run is
//! sufficient to repeat it.

use std::path::{Path, PathBuf};

use pubmark_model::builtin;
use pubmark_model::load::{read_regular, size_files, with_absolute_files};
use pubmark_model::secret::{MASK, masked_yaml, without_password};

use super::{Load, RunSpec, WorkloadSource};
use crate::error::{ErrorKind, RunError};

/// Name of the file in the folder of a run.
pub const SPEC_FILE: &str = "run.yaml";

/// Deepest nesting of lists and maps that is accepted.
const DEEPEST: usize = 16;
/// Largest file that is read, bytes: it may contain the text of a workload.
const LARGEST_BYTES: u64 = 8 << 20;
/// Largest file of sizes whose contents a specification stores, and the limit of all of them together, in bytes. Other
/// files are stored as paths.
const LARGEST_CONTENTS: u64 = 1 << 20;
const MOST_CONTENTS: usize = 4 << 20;

impl RunSpec {
    /// Reads a file; paths in it are relative to its folder.
    ///
    /// # Errors
    /// The file cannot be read, or is not a specification; with the position in the file.
    pub fn read(path: &Path) -> Result<RunSpec, RunError> {
        let text = read_bounded(path).map_err(|error| {
            RunError::from_error(ErrorKind::Input, &error).during(format!("failed to read `{}`", path.display()))
        })?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut spec = RunSpec::parse(&text).map_err(|error| {
            error.during(format!("failed to read `{}` as the specification of a run", path.display()))
        })?;
        spec.count_paths_from(folder);
        Ok(spec)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// The text is not a specification; with line and column.
    pub fn parse(text: &str) -> Result<RunSpec, RunError> {
        document(text).map_err(|error| {
            RunError::input(error.to_string())
                .hint("`pubmark schema run` prints the schema; each run's folder has a `run.yaml`")
        })
    }

    /// Whether the file is a specification, not a workload. Both are YAML files; only a specification names a workload.
    pub fn is_one(path: &Path) -> bool {
        /// The field that distinguishes them.
        #[derive(serde::Deserialize)]
        struct Head {
            #[serde(rename = "workload")]
            _workload: serde::de::IgnoredAny,
        }
        path.is_file()
            && read_bounded(path)
                .is_ok_and(|text| serde_saphyr::from_str_with_options::<Head>(&text, options()).is_ok())
    }

    /// The text of a file. Passwords are written as `…`; `secret_parameters` are the workload's parameters that contain
    /// passwords.
    ///
    /// # Errors
    /// A value cannot be written.
    pub fn to_yaml(&self, secret_parameters: &[String]) -> Result<String, RunError> {
        serde_saphyr::to_string(&self.without_secrets(secret_parameters))
            .map_err(|error| RunError::from_error(ErrorKind::Internal, &error))
    }

    /// As [`RunSpec::to_yaml`], but with the passwords in URLs, settings and the workload's text, for a storage that
    /// protects secrets.
    ///
    /// # Errors
    /// A value cannot be written.
    pub fn to_yaml_with_passwords(&self) -> Result<String, RunError> {
        serde_saphyr::to_string(self).map_err(|error| RunError::from_error(ErrorKind::Internal, &error))
    }

    /// The same run for a separate folder: the text of the workload replaces its path, and other paths, including those
    /// in the workload, become absolute. A file that cannot be read remains a path, and [`RunSpec::load`] refuses it.
    #[must_use]
    pub fn self_contained(&self) -> RunSpec {
        let mut spec = self.clone();
        if let WorkloadSource::Named(name) = &self.workload
            && builtin::find(name).is_none()
            && let Ok(text) = read_bounded(Path::new(name))
        {
            let folder = std::path::absolute(name).ok();
            let folder = folder.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
            spec.load.add_files(&text, folder);
            let text = with_absolute_files(&text, &mut spec.load.set, folder, &spec.load.files);
            spec.workload = WorkloadSource::Inline { file_name: name.clone(), text, passwords_left_out: false };
        }
        if let WorkloadSource::Inline { file_name, text, .. } = &spec.workload {
            let folder = Path::new(file_name).parent().unwrap_or(Path::new(""));
            spec.load.add_files(text, folder);
        }
        // Fails only without a working directory, where a relative path cannot be resolved anyway.
        if let Ok(here) = std::env::current_dir() {
            let workload = spec.workload.clone();
            spec.count_paths_from(&here);
            // Messages name the workload as the user wrote it.
            spec.workload = workload;
        }
        spec
    }

    /// Makes relative paths relative to a folder.
    pub fn count_paths_from(&mut self, folder: &Path) {
        let place = |path: &mut PathBuf| *path = folder.join(&*path);
        if let WorkloadSource::Named(name) = &mut self.workload {
            in_folder(name, folder);
        }
        self.target.system.iter_mut().for_each(|system| in_folder(system, folder));
        let connection = &mut self.connection;
        let files =
            [&mut connection.tls_ca, &mut connection.tls_cert, &mut connection.tls_key, &mut connection.password_file];
        files.into_iter().flatten().for_each(place);
        self.nodes.credentials.iter_mut().for_each(place);
    }

    fn without_secrets(&self, secret_parameters: &[String]) -> RunSpec {
        let mut spec = self.clone();
        let target = &mut spec.target;
        for url in
            [&mut target.endpoint, &mut target.subscribe_endpoint, &mut target.node_exporter].into_iter().flatten()
        {
            *url = without_password(url);
        }
        for (key, value) in &mut spec.load.set {
            let setting = format!("{key}={value}");
            if secret_parameters.contains(key) || masked_yaml(&setting) != setting {
                *value = MASK.to_owned();
            }
        }
        if let WorkloadSource::Inline { text, passwords_left_out, .. } = &mut spec.workload {
            let masked = masked_yaml(text);
            *passwords_left_out |= masked != *text;
            *text = masked;
        }
        spec
    }
}

impl Load {
    /// Stores the contents of the files of sizes that a workload names; their paths are relative to `folder`.
    fn add_files(&mut self, text: &str, folder: &Path) {
        let mut bytes: usize = self.files.values().map(String::len).sum();
        for name in size_files(text, &self.set) {
            // Loading the workload reports a file that cannot be read.
            let Ok(contents) = read_regular(&folder.join(&name), LARGEST_CONTENTS) else { continue };
            bytes += contents.len();
            if bytes > MOST_CONTENTS {
                return;
            }
            self.files.entry(name).or_insert(contents);
        }
    }
}

/// The error for a text that is not the expected document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// Line and column, from 1, if the position is known.
    pub place: Option<(u64, u64)>,
    /// The reason.
    pub message: String,
}

impl DocumentError {
    /// The field that the document does not have, if that is the error.
    pub fn unknown_field(&self) -> Option<&str> {
        let (_, rest) = self.message.split_once("unknown field `")?;
        rest.split_once('`').map(|(field, _)| field)
    }
}

impl std::fmt::Display for DocumentError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some((line, column)) = self.place {
            write!(formatter, "line {line}, column {column}: ")?;
        }
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for DocumentError {}

/// Parses untrusted YAML or JSON: the nesting is limited, and each key may occur once.
///
/// # Errors
/// The text is not the expected document; with the position.
pub fn document<Value: serde::de::DeserializeOwned>(text: &str) -> Result<Value, DocumentError> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
        let error = error.without_snippet();
        let said = error.to_string();
        let message = in_words(said.rsplit_once(" at line ").map_or(said.as_str(), |(before, _)| before));
        let place = error.location().map(|place| (place.line(), place.column()));
        DocumentError { place, message }
    })
}

/// A message of the parser in the words of a file's author.
fn in_words(message: &str) -> String {
    let whole = |most: u64| format!("a whole number from 0 to {most} is expected");
    match message {
        "expected mapping start" => "fields are expected, such as `{key: value}`".to_owned(),
        "expected sequence start" => "a list is expected, such as `[one, two]`".to_owned(),
        "expected string scalar" => "a text is expected".to_owned(),
        "invalid u8" => whole(u8::MAX.into()),
        "invalid u16" => whole(u16::MAX.into()),
        "invalid u32" => whole(u32::MAX.into()),
        "invalid u64" => "a whole number that is not negative is expected".to_owned(),
        "invalid f64" | "invalid floating point" => "a number is expected".to_owned(),
        other => other.to_owned(),
    }
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEEPEST, max_documents: 1 },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        with_snippet: false,
    }
}

/// A name is not changed; a path becomes relative to the folder.
fn in_folder(name: &mut String, folder: &Path) {
    if name.contains('/') || name.ends_with(".yaml") {
        *name = folder.join(&*name).display().to_string();
    }
}

fn read_bounded(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)?.take(LARGEST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use pubmark_model::secret::Secret;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut spec = RunSpec::new("smart-home");
        spec.load.qos = Some(1);
        spec.load.set = vec![("interval".to_owned(), "10ms".to_owned())];
        spec.load.links = vec![pubmark_model::link::choice::LinkChoice::parse("all={delay: 20ms, loss: 1%}").unwrap()];
        spec.target.system = Some("mosquitto".to_owned());
        spec.target.topology = Some(pubmark_model::topology::Topology::parse("3:bridge").unwrap());
        spec.window.duration = Duration::from_millis(1_500);
        spec.generator.pin = vec!["system=0".to_owned()];
        spec.nodes.local_nodes = Some(3);
        spec.nodes.placement = vec![pubmark_model::placement::PlacementChoice::parse("dashboards=each site").unwrap()];
        spec.nodes.node_labels = vec![pubmark_model::placement::LabelsInTurn::parse("site=edge-1,cloud").unwrap()];
        let text = spec.to_yaml(&[]).unwrap();
        assert_eq!(RunSpec::parse(&text).unwrap(), spec, "{text}");
        assert_eq!(serde_json::from_str::<RunSpec>(&serde_json::to_string(&spec).unwrap()).unwrap(), spec);
    }

    #[test]
    fn a_workload_is_all_that_is_required() {
        assert_eq!(RunSpec::parse("workload: hello").unwrap(), RunSpec::new("hello"));
        let error = RunSpec::parse("workload: hello\nwindow: {length: 5s}").unwrap_err().to_string();
        assert!(error.contains("length") && error.contains('2'), "{error}");
        let error = RunSpec::parse("workload: hello\nwindow: {duration: 5 parsecs}").unwrap_err().to_string();
        assert!(error.contains("5 parsecs"), "{error}");
        let error = RunSpec::parse("workload: [hello]").unwrap_err().to_string();
        assert!(error.contains("the path of a workload was expected"), "{error}");
    }

    #[test]
    fn a_value_of_another_type_is_refused_in_words() {
        for (text, words) in [
            ("load: fast", "line 2, column 7: fields are expected"),
            ("metrics: fast", "line 2, column 10: a list is expected"),
            ("load: {scale: many}", "line 2, column 15: a whole number from 0 to 4294967295 is expected"),
            ("load: {qos: 300}", "line 2, column 13: a whole number from 0 to 255 is expected"),
            ("load: {rate: fast}", "line 2, column 14: a number is expected"),
            ("objectives: [fast]", "line 2, column 13: a text is expected"),
        ] {
            let error = RunSpec::parse(&format!("workload: hello\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn no_password_is_written() {
        let mut spec = RunSpec::new("hello");
        spec.connection.user = Some("ann".to_owned());
        spec.connection.password = Some(Secret::from("planted"));
        spec.target.endpoint = Some("mqtt://ann:planted@host:1".to_owned());
        spec.load.set = vec![("devices.0.credentials.password".to_owned(), "planted".to_owned())];
        spec.workload = WorkloadSource::Inline {
            file_name: "w.yaml".to_owned(),
            text: "devices:\n- credentials: {user: a, password: planted}\n".to_owned(),
            passwords_left_out: false,
        };
        let text = spec.to_yaml(&[]).unwrap();
        assert!(!text.contains("planted") && text.contains(MASK), "{text}");
        // Each placeholder is refused when the file is read again, never used as the password.
        let read = RunSpec::parse(&text).unwrap();
        for part in [
            RunSpec { workload: read.workload.clone(), ..RunSpec::new("hello") },
            RunSpec { target: read.target.clone(), ..RunSpec::new("hello") },
            RunSpec { load: read.load.clone(), ..RunSpec::new("hello") },
            RunSpec { connection: read.connection.clone(), ..RunSpec::new("hello") },
        ] {
            let error = part.load().map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("left out when the specification was written"), "{error}");
        }
    }

    #[test]
    fn paths_count_from_the_folder_and_names_stay() {
        let mut spec = RunSpec::new("mine/w.yaml");
        spec.target.system = Some("mosquitto".to_owned());
        spec.connection.tls_ca = Some("ca.pem".into());
        spec.count_paths_from(Path::new("/folder"));
        assert_eq!(spec.workload, WorkloadSource::Named("/folder/mine/w.yaml".to_owned()));
        assert_eq!(spec.target.system.as_deref(), Some("mosquitto"));
        assert_eq!(spec.connection.tls_ca.as_deref(), Some(Path::new("/folder/ca.pem")));
    }

    #[test]
    fn a_specification_is_distinguished_from_a_workload() {
        let folder = tempfile::tempdir().unwrap();
        let [spec, workload] = ["run.yaml", "w.yaml"].map(|name| folder.path().join(name));
        std::fs::write(&spec, "workload: hello\n").unwrap();
        std::fs::write(&workload, "name: hello\ndevices: []\n").unwrap();
        assert!(RunSpec::is_one(&spec) && !RunSpec::is_one(&workload));
        assert!(!RunSpec::is_one(Path::new("smart-home")));
    }
}
