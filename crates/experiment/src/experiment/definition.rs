//! Reads and validates the definition of an experiment, and saves the files that it refers to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pubmark_model::experiment::{self, EndpointChoice, Experiment, LoadError, Loaded, Objection, Word};
use pubmark_model::load::{self as workloads, LoadOptions, with_absolute_files};
use pubmark_model::random;
use pubmark_model::secret::{masked_yaml, without_password};
use pubmark_record::comparison::{FIGURES, Unit};
use pubmark_runner::{ErrorKind, RunError, save, suggestion, target};
use pubmark_systems::limits::{self, LimitError};
use pubmark_systems::{Definition, affinity};

use super::cell_spec::{in_folder, is_path};
use super::journal;
use pubmark_protocols::{self as protocols, known};

/// Name of the definition's file in the experiment's folder.
pub const DEFINITION_FILE: &str = "experiment.yaml";

/// Loads a built-in experiment or one from a file.
pub fn load(name_or_path: &str) -> Result<Loaded, RunError> {
    experiment::load(name_or_path, judge).map_err(|error| not_loaded(error, name_or_path))
}

/// Reads the text of a definition; paths are relative to `folder`.
pub fn parse(text: &str, folder: &Path) -> Result<Experiment, RunError> {
    experiment::parse(DEFINITION_FILE, text, &|word, text| judge(folder, word, text))
        .map_err(|error| not_loaded(error, DEFINITION_FILE))
}

fn not_loaded(error: LoadError, name: &str) -> RunError {
    match error {
        LoadError::NotFound { ref name, ref hint } => {
            RunError::input(format!("there is no experiment `{name}`")).hint(hint.clone())
        }
        LoadError::Unreadable { .. } => RunError::from_error(ErrorKind::Input, &error)
            .hint("give an experiment's file, or a built-in one: `pubmark list experiments`"),
        found => RunError::in_file(found).during(format!("failed to load the experiment `{name}`")),
    }
}

/// Validates names; paths are relative to `folder`.
pub fn judge(folder: &Path, word: Word<'_>, text: &str) -> Result<(), Objection> {
    match word {
        Word::Workload => workload(&in_folder(text, folder)),
        Word::System => system(text, folder),
        Word::Endpoint => endpoint(text),
        // A protocol that this build lacks is reported with its cells.
        Word::Protocol if protocols::find(text).is_none() && known::left_out(text).is_none() => Err(Objection {
            message: format!("there is no protocol `{text}`"),
            hint: Some(suggestion::choices(text, protocols::names())),
        }),
        Word::Protocol => Ok(()),
        Word::Figure if FIGURES.iter().all(|figure| figure.name != text) => Err(Objection {
            message: format!("there is no figure `{text}`"),
            hint: Some(suggestion::choices(text, FIGURES.iter().map(|figure| figure.name))),
        }),
        Word::Figure => Ok(()),
        Word::FigureValue(figure) => figure_value(figure, text),
        // What this machine lacks is reported with its cells.
        Word::Limit => match limits::parse(text) {
            Ok(_) | Err(LimitError::MoreThanThere { .. }) => Ok(()),
            Err(error) => Err(plain(&error)),
        },
        Word::Cores => affinity::parse_pins(&[format!("system={text}")]).map(|_| ()).map_err(|error| plain(&error)),
    }
}

/// A value must have the unit of its figure, so that units cannot be confused.
fn figure_value(figure: &str, text: &str) -> Result<(), Objection> {
    let figure_alone = text.trim_start_matches(['<', '>']);
    let is_number = figure_alone.parse::<f64>().is_ok();
    let Some(unit) = FIGURES.iter().find(|known| known.name == figure).map(|known| known.unit) else { return Ok(()) };
    let (fits, wanted) = match unit {
        Unit::Microseconds => (!is_number && !text.ends_with('%'), "a time such as `3.94ms`"),
        Unit::Share => (text.ends_with('%'), "a share such as `98%`"),
        Unit::Count | Unit::PerSecond | Unit::Cores | Unit::CpuSecondsPerMillion | Unit::Bytes | Unit::Number => {
            (is_number, "a number without a unit")
        }
    };
    if fits {
        return Ok(());
    }
    let message = format!("`{text}` is no value of the figure `{figure}`");
    Err(Objection { message, hint: Some(format!("write {wanted}")) })
}

/// Checks only that the workload exists. Its content and the settings are checked with each cell.
fn workload(name: &str) -> Result<(), Objection> {
    match workloads::load(name, &LoadOptions::default()) {
        Err(workloads::LoadError::NotFound { name, hint }) => {
            Err(Objection { message: format!("there is no workload `{name}`"), hint: Some(hint) })
        }
        Err(error @ workloads::LoadError::Unreadable { .. }) => Err(plain(&error)),
        _ => Ok(()),
    }
}

fn system(text: &str, folder: &Path) -> Result<(), Objection> {
    if !is_path(text) && !Definition::names().contains(&text) {
        let choices = suggestion::choices(text, Definition::names());
        return Err(Objection {
            message: format!("there is no system `{text}`"),
            hint: Some(format!("{choices}; or the path of a definition")),
        });
    }
    Definition::load(&in_folder(text, folder)).map(|_| ()).map_err(|error| plain(&error))
}

/// Checks only that clients support the scheme. Whether the endpoint can be reached is checked with each cell.
fn endpoint(url: &str) -> Result<(), Objection> {
    if !url.contains("://") {
        let message = format!("endpoint `{url}` has no scheme");
        return Err(Objection {
            message,
            hint: Some(format!("`mqtt://{url}`, or another of `pubmark list protocols`")),
        });
    }
    let found = pubmark_runner::protocol_pair::of_endpoint(url);
    found.map(|_| ()).map_err(|error| Objection { message: error.to_string(), hint: error.hint })
}

fn plain(error: &dyn std::error::Error) -> Objection {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    Objection { message, hint: None }
}

/// The warm-up that each of its systems needs; zero for one that needs none. Paths are relative to `folder`.
///
/// # Errors
/// The definition of a system cannot be read.
pub fn warm_ups(experiment: &Experiment, folder: &Path) -> Result<Vec<Duration>, RunError> {
    let systems = experiment.axes.system.iter().filter_map(|choice| choice.system.as_deref());
    systems.map(|system| Ok(target::definition(&in_folder(system, folder))?.warm_up())).collect()
}

/// Its workload, or the number of workloads.
pub fn workload_words(experiment: &Experiment) -> String {
    match experiment.axes.workload.as_slice() {
        [] => experiment.workload.clone(),
        [only] => only.clone(),
        several => format!("{} workloads", several.len()),
    }
}

/// Subfolder with the workloads.
const WORKLOADS: &str = "workloads";

/// An experiment with the files that it refers to, which are copied to its folder.
pub struct Bundle {
    /// The experiment, with the names of the files in its folder.
    pub experiment: Experiment,
    /// Name in the folder, and present path of each file.
    pub files: Vec<(String, PathBuf)>,
}

/// Plans copies of the workload's file and of the systems' definitions, so that the experiment can be repeated from its
/// folder alone.
pub fn bundle(mut experiment: Experiment, folder: &Path) -> Bundle {
    count_settings_from_workload(&mut experiment, folder);
    let mut files: Vec<(String, PathBuf)> = vec![];
    let mut add = |name: &mut String, kind: &str| {
        if !is_path(name) {
            return;
        }
        let source = folder.join(&*name);
        let known = files.iter().find(|(_, known)| *known == source).map(|(name, _)| name.clone());
        *name = known.unwrap_or_else(|| {
            let file = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let names = std::iter::once(format!("{kind}/{file}")).chain((2..).map(|n| format!("{kind}/{n}/{file}")));
            let mut free = names.filter(|name| files.iter().all(|(taken, _)| taken != name));
            let name = free.next().expect("the numbers do not end before the files");
            files.push((name.clone(), source));
            name
        });
    };
    add(&mut experiment.workload, WORKLOADS);
    for workload in &mut experiment.axes.workload {
        add(workload, WORKLOADS);
    }
    for choice in &mut experiment.axes.system {
        choice.system.iter_mut().for_each(|system| add(system, "systems"));
        // Keys and passwords are not copied.
        let files = choice.endpoint.iter_mut().flat_map(EndpointChoice::files_mut);
        files.for_each(|file| *file = folder.join(&*file).display().to_string());
    }
    Bundle { experiment, files }
}

/// Resolves files that settings name relative to the present path of the workload's file.
fn count_settings_from_workload(experiment: &mut Experiment, folder: &Path) {
    let workload = experiment.axes.workload.first().unwrap_or(&experiment.workload);
    let path = folder.join(workload);
    let from = path.parent().unwrap_or(folder);
    with_absolute_files("", &mut experiment.set, from, &BTreeMap::new());
    for (path, values) in &mut experiment.axes.set {
        for value in values {
            let mut setting = [(path.clone(), std::mem::take(value))];
            with_absolute_files("", &mut setting, from, &BTreeMap::new());
            let [(_, counted)] = setting;
            *value = counted;
        }
    }
}

impl Bundle {
    /// The folder of an experiment may be published, so no password may be saved in it.
    pub fn refuse_passwords(&self, secret_parameters: &[String]) -> Result<(), RunError> {
        let refused = |place: String| {
            RunError::input(format!(
                "{place} holds a password, and an experiment's folder would store it for others to read"
            ))
            .hint("in the workload, `credentials: {user: …, password_env: NAME}` takes it from the environment")
        };
        let set = &self.experiment.set;
        let varied = &self.experiment.axes.set;
        let settings = set
            .iter()
            .map(|(key, value)| (key, value))
            .chain(varied.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value))));
        for (key, value) in settings {
            let setting = format!("{key}={value}");
            if secret_parameters.contains(key) || masked_yaml(&setting) != setting {
                return Err(refused(format!("the setting `{key}`")));
            }
        }
        let endpoints = self.experiment.axes.system.iter().filter_map(|choice| choice.endpoint.as_ref());
        if let Some(url) = endpoints.flat_map(EndpointChoice::urls).find(|url| without_password(url) != **url) {
            return Err(refused(format!("`{}`", without_password(url))).hint(
                "in the experiment's file, `user: NAME` and `password_env: VARIABLE` beside `endpoint` take it from the environment",
            ));
        }
        for (_, source) in self.files.iter().filter(|(name, _)| name.starts_with(WORKLOADS)) {
            if read(source).map(|text| masked_yaml(&text) != text)? {
                return Err(refused(format!("`{}`", source.display())));
            }
        }
        Ok(())
    }

    /// Writes the files and the definition into the experiment's folder.
    pub fn write(&self, folder: &Path) -> Result<(), RunError> {
        for (name, source) in &self.files {
            let mut text = read(source)?;
            if name.starts_with(WORKLOADS) {
                // Files with log-ins, keys and sizes are not copied.
                text = with_absolute_files(&text, &mut [], source.parent().unwrap_or(Path::new("")), &BTreeMap::new());
            }
            save::write(&folder.join(name), &text)?;
        }
        save::write(&folder.join(DEFINITION_FILE), &self.experiment.to_yaml())
    }
}

fn read(file: &Path) -> Result<String, RunError> {
    std::fs::read_to_string(file).map_err(|error| {
        RunError::from_error(ErrorKind::Input, &error).during(format!("failed to read `{}`", file.display()))
    })
}

/// Reads the definition in an experiment's folder. An extension that was not written to its file yet is read from the journal.
pub fn in_experiment(folder: &Path) -> Result<Experiment, RunError> {
    if let Some(text) = journal::last_definition(folder) {
        return parse(&text, folder);
    }
    let path = folder.join(DEFINITION_FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        RunError::from_error(ErrorKind::Input, &error)
            .during(format!("failed to read `{}`", path.display()))
            .hint("give the folder of an experiment, for instance `runs/20260301-090507-brokers`")
    })?;
    parse(&text, folder)
}

/// Keys of a definition on which no run depends.
const NOT_OF_RUNS: [&str; 4] = ["title", "description", "quick", "papers"];

/// Hashes of what the runs in an experiment's folder depend on: the keys of its definition, whatever comments it has, and the
/// files that it names.
///
/// # Errors
/// One of the files cannot be read.
pub fn hashes(folder: &Path) -> Result<BTreeMap<String, String>, RunError> {
    hashes_of(&in_experiment(folder)?, folder)
}

/// The same for a definition that is not written to the folder yet.
///
/// # Errors
/// One of the files that it names cannot be read.
pub fn hashes_of(experiment: &Experiment, folder: &Path) -> Result<BTreeMap<String, String>, RunError> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut key = "";
    let written = experiment.to_yaml();
    for line in written.lines() {
        if let Some((head, _)) = line.split_once(':').filter(|(head, _)| !head.starts_with(' ')) {
            key = head;
        }
        if !NOT_OF_RUNS.contains(&key) {
            texts.entry(format!("{DEFINITION_FILE}: {key}")).or_default().extend([line, "\n"]);
        }
    }
    let systems = experiment.axes.system.iter().filter_map(|choice| choice.system.as_ref());
    let named = std::iter::once(&experiment.workload).chain(&experiment.axes.workload).chain(systems);
    for name in named.filter(|name| is_path(name)) {
        texts.insert(name.clone(), read(&folder.join(name))?);
    }
    Ok(texts.into_iter().map(|(name, text)| (name, format!("{:016x}", random::fold(0, text.as_bytes())))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_workload_names_are_found_from_the_experiments_folder() {
        let home = tempfile::tempdir().unwrap();
        let text = "name: w\ndevices: [{name: a, every: 1s, payload: {sizes: {file: s.csv}}, topic: t}]\n";
        std::fs::create_dir(home.path().join("mine")).unwrap();
        std::fs::write(home.path().join("mine/w.yaml"), text).unwrap();
        let definition = "{name: t, workload: mine/w.yaml, set: {devices.a.credentials.file: d.csv}, \
                          axes: {system: builtin, set: {devices.a.payload.sizes.file: [x.csv, /y.csv]}}}";
        let read = experiment::parse("t.yaml", definition, &|_, _| Ok(())).unwrap();
        let bundle = bundle(read, home.path());
        let mine = |name: &str| home.path().join("mine").join(name).display().to_string();
        assert_eq!(bundle.experiment.set[0].1, mine("d.csv"));
        assert_eq!(bundle.experiment.axes.set[0].1, [mine("x.csv"), "/y.csv".to_owned()]);
        let results = home.path().join("results");
        std::fs::create_dir_all(results.join("workloads")).unwrap();
        bundle.write(&results).unwrap();
        let written = std::fs::read_to_string(results.join("workloads/w.yaml")).unwrap();
        assert_eq!(written, text.replace("s.csv", &format!("\"{}\"", mine("s.csv"))));
    }

    #[test]
    fn files_with_one_name_keep_apart() {
        let text = "{name: t, workload: ./w.yaml, axes: {system: [a/mine.yaml, {system: b/mine.yaml, label: other}, \
                    {system: a/mine.yaml, label: again}, mosquitto]}}";
        let read = experiment::parse("t.yaml", text, &|_, _| Ok(())).unwrap();
        let bundle = bundle(read, Path::new("/from"));
        let systems: Vec<&str> =
            bundle.experiment.axes.system.iter().filter_map(|choice| choice.system.as_deref()).collect();
        assert_eq!(systems, ["systems/mine.yaml", "systems/2/mine.yaml", "systems/mine.yaml", "mosquitto"]);
        assert_eq!(bundle.experiment.workload, "workloads/w.yaml");
        assert_eq!(bundle.files.len(), 3);
        let labels: Vec<&str> = bundle.experiment.axes.system.iter().map(|choice| choice.label.as_str()).collect();
        assert_eq!(labels, ["mine", "other", "again", "mosquitto"]);
    }

    #[test]
    fn every_built_in_experiment_can_be_loaded_here() {
        for name in experiment::names() {
            assert!(load(name).is_ok(), "{name}: {:?}", load(name).err());
        }
    }
}
