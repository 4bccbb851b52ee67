//! `pubmark check`: compares a run or an experiment with limits and a baseline, for continuous integration.

use std::path::{Path, PathBuf};

use clap::Args;
use pubmark_model::builtin;
use pubmark_preflight::dry_run;
use pubmark_record::check::{Demands, Subject, judge};
use pubmark_record::conclusion::Conclusion;
use pubmark_record::objectives::Undecided;
use pubmark_record::threshold::{Conditions, Objectives};
use pubmark_report::check::{json, junit, text};
use pubmark_runner::RunSpec;
use pubmark_runner::objectives::unread;

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::rendering;
use crate::values::{UNDECIDED, one_of};

/// Check a run or an experiment against limits and a baseline.
///
/// Without `--require`, runs are checked against the limits they were made with. In an experiment, every run has to
/// meet each limit; a change from the baseline counts only if it exceeds the noise. A figure that was not measured
/// fails its check. For a workload, its file is validated and its links are shown.
#[derive(Debug, Args)]
pub struct Check {
    /// Folder of a run or of an experiment, or its record; or a workload
    #[arg(value_name = "RUN_OR_EXPERIMENT")]
    pub subject: PathBuf,

    /// Limits that must hold, for instance 'p99<50ms,loss=0'
    #[arg(long, value_name = "LIMITS")]
    pub require: Option<String>,

    /// Conditions that must not be true, for instance 'max>1s'; with a sign, a change from the baseline: 'p99>+10%'
    #[arg(long, value_name = "CONDITIONS")]
    pub fail_on: Option<String>,

    /// Run or experiment of the same schedule, with which changes are compared
    #[arg(long, value_name = "RUN_OR_EXPERIMENT")]
    pub baseline: Option<PathBuf>,

    /// Also write the checks as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// How an undecided limit or change counts [default: exit code 8]
    #[arg(long, value_name = "pass|fail", value_parser = one_of(UNDECIDED))]
    pub undecided: Option<Undecided>,

    /// Fail for suspect runs, too
    #[arg(long)]
    pub strict: bool,

    /// Print the checks as JSON
    #[arg(long)]
    pub json: bool,
}

impl Check {
    /// Loads the records, evaluates the checks and prints them.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let demands = self.demands()?;
        if let Some(name) = self.workload() {
            return self.check_workload(name, printer);
        }
        let load = |path: &Path| Subject::load(path).map_err(rendering::unreadable);
        let subject = load(&self.subject)?;
        let baseline = self.baseline.as_deref().map(load).transpose()?;
        let mut checked = judge(&subject, &demands, baseline.as_ref())
            .map_err(|error| Failure::from_error(ExitCode::Usage, &error).hint(error.hint()))?;
        if let Some(choice) = self.undecided {
            checked.decide(choice);
        }
        if let Some(file) = &self.junit {
            let xml = junit::xml(&checked).map_err(|error| Failure::from_error(ExitCode::Internal, &error))?;
            rendering::write(file, &xml)?;
        }
        let exit = ExitCode::from(Conclusion::of_checks(&checked));
        match self.json {
            true => printer.json(&json::value(&checked, exit.number()))?,
            false => printer.result(&text::text(&checked, printer.colours_result()))?,
        }
        Ok(exit)
    }

    /// The workload's name, if the argument is a workload: a built-in one, or a file that is not a record.
    fn workload(&self) -> Option<&str> {
        let name = self.subject.to_str()?;
        let is_file = self.subject.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        let is_built_in = !self.subject.exists() && builtin::names().contains(&name);
        (is_file || is_built_in).then_some(name)
    }

    /// A workload has no figures to compare with limits.
    fn check_workload(&self, name: &str, printer: &Printer) -> Outcome {
        if self.require.is_some() || self.fail_on.is_some() || self.junit.is_some() || self.json {
            return Err(Failure::usage(format!("`{name}` is a workload, and limits are for runs of it"))
                .hint(format!("`pubmark run {name}` first; `pubmark check {name}` alone checks the file")));
        }
        printer.result(&dry_run::workload::text(&RunSpec::new(name).load()?))?;
        Ok(ExitCode::Ok)
    }

    fn demands(&self) -> Result<Demands, Failure> {
        let require = self.require.as_deref().map(Objectives::parse).transpose();
        let fail_on = self.fail_on.as_deref().map(Conditions::parse).transpose();
        let demands = Demands {
            require: require.map_err(|error| unread("`--require`", &error))?,
            fail_on: fail_on.map_err(|error| unread("`--fail-on`", &error))?,
            strict: self.strict,
        };
        let need_baseline = demands.fail_on.as_ref().is_some_and(Conditions::need_baseline);
        match (&self.baseline, need_baseline) {
            (None, true) => Err(Failure::usage("`--fail-on` names a change, and no baseline is given")
                .hint("name the run to compare with: `--baseline runs/before`")),
            (Some(_), false) => Err(Failure::usage("`--baseline` is given, and `--fail-on` names no change from it")
                .hint("say what counts as a regression: `--fail-on 'p99>+10%'`")),
            _ => Ok(demands),
        }
    }
}
