//! Fetching images before the first run: once for each, so that one that cannot be had costs a moment, not a moment in every run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pubmark_runner::target::CheckedTarget;
use pubmark_systems::container::ContainerError;
use pubmark_systems::{SystemError, launch};

use super::planning::{Plan, Refusal};
use crate::observer::{Event, Observer};

/// What an engine says while it fetches, in the experiment's folder; gone once all are here.
const LOG: &str = "images.log";

/// Fetches what the cells need and this machine has not. Cells whose image cannot be had are refused with the reason.
pub fn images(plan: &mut Plan, folder: &Path, observer: &mut dyn Observer) {
    let log = folder.join(LOG);
    // Why each image cannot be had, if so, by system and image.
    let mut asked: BTreeMap<(String, Option<String>), Option<String>> = BTreeMap::new();
    for cell in &mut plan.cells {
        let Ok(run) = &cell.run else { continue };
        let CheckedTarget::Started { definition, options } = &run.wanted else { continue };
        if !options.runs_in_container(definition) {
            continue;
        }
        let image = (definition.name.clone(), options.image.clone());
        let said = asked.entry(image).or_insert_with(|| {
            observer.event(&Event::LooksForImage { system: &definition.name });
            match launch::fetch(definition, options, &log) {
                Err(SystemError::Container(error @ ContainerError::Image { .. })) => Some(error.to_string()),
                // Anything else in the way, Ctrl-C too, is the runs' own to tell.
                Ok(()) | Err(_) => None,
            }
        });
        if let Some(text) = said {
            cell.run = Err(Refusal::not_installed(text.clone()));
        }
    }
    // It is not there where nothing was fetched, and in no one's way where it cannot be removed.
    let _ = fs::remove_file(&log);
}
