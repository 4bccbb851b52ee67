//! `pubmark devices`: credentials of emulated devices.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use pubmark_systems::device_certificates::{self, AUTHORITY, MOST_DEVICES, MOST_VALID_DAYS, Order, ROWS};

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;

/// Default validity of certificates, days.
const VALID_DAYS: u32 = 365;

/// Create credentials with which emulated devices log in
#[derive(Debug, Args)]
pub struct Devices {
    /// What to do.
    #[command(subcommand)]
    pub what: What,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Make an authority, and a certificate with its key for each device
    Certificates {
        /// Devices
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_DEVICES)))]
        count: u32,

        /// Folder to make
        #[arg(long, value_name = "DIR", default_value = "devices")]
        out: PathBuf,

        /// Devices are called this and their number, from 0; letters, digits, `-`, `_`
        #[arg(long, value_name = "TEXT", default_value = "device-", value_parser = prefix)]
        prefix: String,

        /// Days for which the certificates are valid, from yesterday on, as clocks differ
        #[arg(long, value_name = "DAYS", default_value_t = VALID_DAYS,
              value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_VALID_DAYS)))]
        days: u32,
    },
}

fn prefix(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    match text.len() <= 40 && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("up to 40 letters, digits, `-` and `_`".to_owned()),
    }
}

impl Devices {
    /// Creates the credentials and prints what to type next.
    pub fn perform(self, printer: &Printer) -> Outcome {
        match self.what {
            What::Certificates { count, out, prefix, days } => {
                certificates(&out, Order { count, prefix: &prefix, days }, printer)
            }
        }
    }
}

fn certificates(folder: &Path, order: Order<'_>, printer: &Printer) -> Outcome {
    device_certificates::make(folder, order).map_err(|error| {
        Failure::from_error(ExitCode::Usage, &error)
            .hint("`--out DIR` is a folder that is not there yet, in one that is")
    })?;
    let (authority, rows) = (folder.join(AUTHORITY), folder.join(ROWS));
    let count = order.count;
    printer.result(&format!(
        "Made certificates of {count} devices in {folder}.\n\n\
             The system trusts {authority} (mosquitto: `cafile`, `require_certificate true`).\n\
             The devices of a workload show them with\n  \
             credentials: {{file: {rows}}}\n\n\
             Whoever has {folder} can be any of them: keep it as you keep keys.\n",
        folder = folder.display(),
        authority = authority.display(),
        rows = rows.display(),
    ))?;
    Ok(ExitCode::Ok)
}
