//! Pulls container images before the first run, each once, so that an unavailable image does not delay every run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pubmark_runner::target::CheckedTarget;
use pubmark_systems::container::ContainerError;
use pubmark_systems::{SystemError, launch};

use super::planning::{Plan, Refusal};
use crate::observer::{Event, Observer};

/// File in the experiment's folder with the output of a pull; removed when all images are available.
const LOG: &str = "images.log";

/// Pulls the images that this machine lacks. Cells whose image is unavailable are refused with the reason.
pub fn images(plan: &mut Plan, folder: &Path, observer: &mut dyn Observer) {
    let log = folder.join(LOG);
    // By system and image: the reason why it is unavailable, if it is.
    let mut asked: BTreeMap<(String, Option<String>), Option<String>> = BTreeMap::new();
    for cell in &mut plan.cells {
        let Ok(run) = &cell.run else { continue };
        let CheckedTarget::Started { definition, options } = &run.wanted else { continue };
        if !options.runs_in_container(definition) {
            continue;
        }
        let image = (definition.name.clone(), options.image.clone());
        let reason = asked.entry(image).or_insert_with(|| {
            observer.event(&Event::LocatesImage { system: &definition.name });
            match launch::fetch(definition, options, &log) {
                Err(SystemError::Container(error @ ContainerError::Image { .. })) => Some(error.to_string()),
                // Other obstacles, Ctrl-C included, are reported by the runs.
                Ok(()) | Err(_) => None,
            }
        });
        if let Some(text) = reason {
            cell.run = Err(Refusal::not_installed(text.clone()));
        }
    }
    // The file does not exist if nothing was pulled, and does no harm if it cannot be removed.
    let _ = fs::remove_file(&log);
}
