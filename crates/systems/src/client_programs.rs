//! Client programs that pubmark includes: their files, and how their libraries are installed. `pubmark install NAME`
//! installs one, `--client NAME` runs one. To add one, add a folder in `clients/` and a row here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use crate::install::{InstallError, run_script};
use crate::programs;

/// A client program that uses a third-party client library, and how that library is installed.
#[derive(Debug)]
pub struct BundledClient {
    /// Name of the program.
    pub name: &'static str,
    /// Name of the library, and where it comes from.
    pub library: &'static str,
    /// Names of the protocols that the program supports.
    pub protocols: &'static [&'static str],
    /// Command that starts the program; `{programs}` is the folder for programs.
    pub command: &'static str,
    /// The program's files, as paths below `clients` in that folder, with their content.
    files: &'static [(&'static str, &'static str)],
    /// Shell commands that install the library, executed in that `clients` folder.
    pub script: &'static str,
    /// File that the commands install, as a path below `clients`.
    brings: &'static str,
}

/// All included client programs.
pub static CLIENT_PROGRAMS: [BundledClient; 2] = [
    BundledClient {
        name: "paho",
        library: "Eclipse Paho for Python (PyPI)",
        protocols: &["mqtt5", "mqtt311"],
        command: "{programs}/clients/paho/bin/python3 {programs}/clients/paho/client.py",
        files: &[
            ("pubmark_client.py", include_str!("../../../clients/pubmark_client.py")),
            ("paho/client.py", include_str!("../../../clients/paho/client.py")),
            ("paho/requirements.txt", include_str!("../../../clients/paho/requirements.txt")),
        ],
        script: "python3 -m venv paho\n\
                 paho/bin/python3 -m pip install --quiet --disable-pip-version-check -r paho/requirements.txt",
        brings: "paho/bin/python3",
    },
    BundledClient {
        name: "mqttjs",
        library: "MQTT.js (npm)",
        protocols: &["mqtt5", "mqtt311"],
        command: "node {programs}/clients/mqttjs/client.js",
        files: &[
            ("mqttjs/client.js", include_str!("../../../clients/mqttjs/client.js")),
            ("mqttjs/package.json", include_str!("../../../clients/mqttjs/package.json")),
            ("mqttjs/package-lock.json", include_str!("../../../clients/mqttjs/package-lock.json")),
        ],
        script: "cd mqttjs\nnpm ci --silent --no-audit --no-fund --ignore-scripts",
        brings: "mqttjs/node_modules/mqtt/package.json",
    },
];

/// The program of this name.
pub fn find(name: &str) -> Option<&'static BundledClient> {
    CLIENT_PROGRAMS.iter().find(|program| program.name == name)
}

/// Names of all programs.
pub fn names() -> impl Iterator<Item = &'static str> {
    CLIENT_PROGRAMS.iter().map(|program| program.name)
}

/// The first of these words that is a path below the folder for programs and does not exist.
pub fn missing(words: &[String]) -> Option<&Path> {
    words.iter().map(Path::new).find(|path| programs::is_own(path) && !path.exists())
}

impl BundledClient {
    /// Is the program installed, with the files of this version of pubmark?
    pub fn is_here(&self) -> bool {
        programs::folder().is_some_and(|folder| self.is_in(&folder.join("clients")))
    }

    fn is_in(&self, clients: &Path) -> bool {
        let is_same =
            |(path, content): &(&str, &str)| fs::read_to_string(clients.join(path)).is_ok_and(|own| own == *content);
        clients.join(self.brings).exists() && self.files.iter().all(is_same)
    }

    /// The shell commands that install the library, as a separate script, after a line that lists the files that are
    /// written as well.
    pub fn printed_script(&self) -> String {
        let files: Vec<&str> = self.files.iter().map(|(path, _)| *path).collect();
        let files = files.join(", ");
        format!(
            "# {}: `pubmark install` also writes {files} there\ncd \"$PROGRAMS/clients\"\n{}\n",
            self.name, self.script
        )
    }

    /// Writes the program's files and runs its script; returns the folder with the program.
    ///
    /// # Errors
    /// A file cannot be written, the script failed, or `stop` was set.
    pub fn install(&self, stop: &AtomicBool, line: &mut dyn FnMut(&str)) -> Result<PathBuf, InstallError> {
        let folder = programs::folder().ok_or_else(|| InstallError::NoFolder { system: self.name.to_owned() })?;
        self.install_in(&folder.join("clients"), stop, line)
    }

    fn install_in(
        &self,
        clients: &Path,
        stop: &AtomicBool,
        line: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, InstallError> {
        let system = || self.name.to_owned();
        for (path, content) in self.files {
            let file = clients.join(path);
            let failed =
                |source| InstallError::Io { action: format!("write `{}`", file.display()), system: system(), source };
            fs::create_dir_all(file.parent().unwrap_or(clients)).map_err(failed)?;
            fs::write(&file, content).map_err(failed)?;
        }
        let mut command = Command::new("sh");
        command.args(["-eu", "-c", &format!("umask 022\n{}", self.script)]).current_dir(clients);
        run_script(command, self.name, stop, line)?;
        match self.is_in(clients) {
            true => Ok(clients.join(self.name)),
            false => Err(InstallError::Failed { system: system(), status: format!("there is no `{}`", self.brings) }),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_program_starts_from_the_folder_for_programs_and_its_files_are_there_after_the_install() {
        for program in &CLIENT_PROGRAMS {
            let below = |path: &str| format!("{{programs}}/clients/{path}");
            let own = program.files.iter().any(|(path, _)| program.command.contains(&below(path)));
            assert!(own, "{} starts none of its files", program.name);
            let folder = tempfile::tempdir().unwrap();
            // Stands for the library, which would have to be downloaded from a registry.
            let bring: &'static str = match program.name {
                "paho" => "mkdir -p paho/bin; : > paho/bin/python3",
                _ => "mkdir -p mqttjs/node_modules/mqtt; : > mqttjs/node_modules/mqtt/package.json",
            };
            let installed = BundledClient { script: bring, ..*program };
            assert!(!installed.is_in(folder.path()));
            installed.install_in(folder.path(), &AtomicBool::new(false), &mut |_| {}).unwrap();
            assert!(installed.is_in(folder.path()), "{}", program.name);
            fs::write(folder.path().join(program.files[0].0), "of an older version").unwrap();
            assert!(!installed.is_in(folder.path()), "{}", program.name);
            let nothing = BundledClient { script: ":", ..*program };
            let error = nothing
                .install_in(tempfile::tempdir().unwrap().path(), &AtomicBool::new(false), &mut |_| {})
                .unwrap_err();
            assert!(error.to_string().contains("there is no `"), "{error}");
        }
    }
}
