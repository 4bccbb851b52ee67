//! The exit codes of the process: one table for the code, the help and the documentation.

use pubmark_record::conclusion::Conclusion;
use pubmark_report::wrapping::wrap;

/// How a call of `pubmark` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// The call did what was requested.
    Ok = 0,
    /// An internal error of pubmark.
    Internal = 1,
    /// The command line, a workload or another input cannot be used.
    Usage = 2,
    /// A required threshold was missed.
    ThresholdMissed = 3,
    /// A comparison found a regression.
    Regression = 4,
    /// The run is invalid: its figures do not describe the system.
    InvalidRun = 5,
    /// The system under test could not be started, reached, or kept running.
    SystemFailed = 6,
    /// The run was made, but its record or a file beside it could not be written.
    NotWritten = 7,
    /// What was measured does not decide a threshold, a change, a choice or a search.
    Undecided = 8,
    /// Ctrl-C or SIGTERM ended the call.
    Interrupted = 130,
}

impl From<Conclusion> for ExitCode {
    fn from(conclusion: Conclusion) -> ExitCode {
        match conclusion {
            Conclusion::Done => ExitCode::Ok,
            Conclusion::ThresholdMissed => ExitCode::ThresholdMissed,
            Conclusion::Regression => ExitCode::Regression,
            Conclusion::Invalid => ExitCode::InvalidRun,
            Conclusion::SystemFailed => ExitCode::SystemFailed,
            Conclusion::NotWritten => ExitCode::NotWritten,
            Conclusion::Undecided => ExitCode::Undecided,
            Conclusion::Interrupted => ExitCode::Interrupted,
        }
    }
}

impl ExitCode {
    /// All codes, in the order of help and documentation.
    pub const ALL: [ExitCode; 10] = [
        ExitCode::Ok,
        ExitCode::Internal,
        ExitCode::Usage,
        ExitCode::ThresholdMissed,
        ExitCode::Regression,
        ExitCode::InvalidRun,
        ExitCode::SystemFailed,
        ExitCode::NotWritten,
        ExitCode::Undecided,
        ExitCode::Interrupted,
    ];

    /// The exit code with this number, if there is one.
    pub fn of(number: i32) -> Option<ExitCode> {
        ExitCode::ALL.into_iter().find(|code| i32::from(code.number()) == number)
    }

    /// The number that the shell receives.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The meaning of the code, for help and documentation.
    pub fn meaning(self) -> &'static str {
        match self {
            ExitCode::Ok => Conclusion::Done.words(),
            ExitCode::Internal => "internal error",
            ExitCode::Usage => "usage or configuration error",
            ExitCode::ThresholdMissed => Conclusion::ThresholdMissed.words(),
            ExitCode::Regression => Conclusion::Regression.words(),
            ExitCode::InvalidRun => Conclusion::Invalid.words(),
            ExitCode::SystemFailed => Conclusion::SystemFailed.words(),
            ExitCode::NotWritten => Conclusion::NotWritten.words(),
            ExitCode::Undecided => Conclusion::Undecided.words(),
            ExitCode::Interrupted => Conclusion::Interrupted.words(),
        }
    }

    /// What to do about the code, for the documentation.
    pub fn advice(self) -> &'static str {
        match self {
            ExitCode::Ok => "Nothing. A *suspect* run ends with this code too: read its reasons before you quote it.",
            ExitCode::Internal => "Run it again; if it happens again, report it with the whole output.",
            ExitCode::Usage => "Read the message: it names the value and what would be accepted. Nothing was started.",
            ExitCode::ThresholdMissed => {
                "The output says which limit was missed, and by what figure: both of its bounds break it, or it was not \
                 measured."
            }
            ExitCode::Regression => {
                "`pubmark check` says what became worse than the baseline, and by how much, or which figure of a change was \
                 not measured."
            }
            ExitCode::InvalidRun => {
                "Read the reasons: `pubmark explain CODE` says what each means and what to change. Where a node was lost and did \
                 not join again, start it again; what was measured before is there."
            }
            ExitCode::SystemFailed => {
                "Read the tail of the system's log, which the message shows, or check the endpoint. Where no client could \
                 connect, nothing is written; `--json` prints the record all the same."
            }
            ExitCode::NotWritten => {
                "The run was made, and its summary or `--json` printed. Free space or choose another disk with `--out`; where \
                 `record.json` was written, `pubmark report RUN` makes what is missing beside it, but for histograms."
            }
            ExitCode::Undecided => {
                "Nothing failed, and what was measured does not decide everything: a limit lies between both bounds of its figure, \
                 or a change may come from the measurement. The output says what would decide it; `--undecided pass` or \
                 `--undecided fail` decides it for a pipeline. Give a search more time with `--within`."
            }
            ExitCode::Interrupted => "The record was written up to that moment and is marked `interrupted`.",
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> std::process::ExitCode {
        std::process::ExitCode::from(code.number())
    }
}

/// The table at the end of `--help`.
pub fn help() -> String {
    let mut text = String::from("Exit codes:\n");
    for code in ExitCode::ALL {
        text.push_str(&format!("  {:<4} {}\n", code.number(), code.meaning()));
    }
    text.truncate(text.trim_end().len());
    text
}

/// The codes, as `pubmark list exit-codes` accepts them.
pub fn names() -> Vec<String> {
    ExitCode::ALL.iter().map(|code| code.number().to_string()).collect()
}

/// Details of one code, with advice.
pub fn details(name: &str) -> Option<String> {
    let code = ExitCode::ALL.into_iter().find(|code| code.number().to_string() == name)?;
    Some(format!("{name}  {}\n{}", code.meaning(), wrap("  ", 2, code.advice())))
}

/// The page `docs/reference/exit-codes.md`.
pub fn markdown() -> String {
    let mut text = String::from("# Exit codes\n\n| code | meaning | what to do |\n|---|---|---|\n");
    for code in ExitCode::ALL {
        text.push_str(&format!("| {} | {} | {} |\n", code.number(), code.meaning(), code.advice()));
    }
    text
}
