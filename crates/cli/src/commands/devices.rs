//! `pubmark devices`: credentials with which emulated devices log in.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use pubmark_systems::device_certificates::{self, AUTHORITY, MOST_DEVICES, MOST_VALID_DAYS, Order, ROWS};

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;

/// Days for which certificates are valid, unless `--days` is given.
const VALID_DAYS: u32 = 365;

/// Make credentials with which emulated devices log in
#[derive(Debug, Args)]
pub struct Devices {
    /// The subcommand.
    #[command(subcommand)]
    pub what: What,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Make an authority, and a certificate with its key for each device
    Certificates {
        /// Number of devices
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_DEVICES)))]
        count: u32,

        /// Folder to create
        #[arg(long, value_name = "DIR", default_value = "devices")]
        out: PathBuf,

        /// Prefix of the devices' names, which have a number from 0 behind it; letters, digits, `-`, `_`
        #[arg(long, value_name = "TEXT", default_value = "device-", value_parser = device_certificates::prefix)]
        prefix: String,

        /// Days for which the certificates are valid, from yesterday on, because clocks differ
        #[arg(long, value_name = "DAYS", default_value_t = VALID_DAYS,
              value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_VALID_DAYS)))]
        days: u32,
    },
}

impl Devices {
    /// Creates the certificates and prints the next commands.
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
             Anyone who has {folder} can log in as any of them: protect it like a private key.\n",
        folder = folder.display(),
        authority = authority.display(),
        rows = rows.display(),
    ))?;
    Ok(ExitCode::Ok)
}
