//! Placements that replace those of the workload for a run: `cameras=site=edge-1`, `default=split`, `none`.

use std::fmt;

use super::{Placement, Placements, check};
use crate::load::LoadError;
use crate::workload::Workload;

/// A placement for one group or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementChoice {
    /// For a group, for the clients that groups share, or for `default`, `devices` or `subscribers`.
    Of(String, Placement),
    /// Removes all placements of the workload.
    None,
}

/// The text that removes all placements.
const NONE: &str = "none";

impl PlacementChoice {
    /// Parses `GROUP=PLACEMENT` or `none`.
    ///
    /// # Errors
    /// The text is neither. The error is a sentence.
    pub fn parse(text: &str) -> Result<PlacementChoice, String> {
        if text.trim() == NONE {
            return Ok(PlacementChoice::None);
        }
        let form = "a placement is written GROUP=PLACEMENT: `cameras=site=edge-1`, `dashboards=each site`, `default=split`; or `none`";
        let (group, placement) = text.split_once('=').ok_or_else(|| form.to_owned())?;
        if group.trim().is_empty() {
            return Err(form.to_owned());
        }
        // `site=edge-1` alone is a label without a group.
        let placement = Placement::parse(placement).map_err(|why| format!("{why}; {form}"))?;
        Ok(PlacementChoice::Of(group.trim().to_owned(), placement))
    }
}

impl fmt::Display for PlacementChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementChoice::Of(group, placement) => write!(formatter, "{group}={placement}"),
            PlacementChoice::None => formatter.write_str(NONE),
        }
    }
}

/// Names of the groups that use the clients with this name.
fn carried_by(workload: &Workload, client: &str) -> Vec<String> {
    let devices = workload.devices.iter().map(|group| (&group.name, &group.client));
    let subscribers = workload.subscribers.iter().map(|group| (&group.name, &group.client));
    let carried = devices.chain(subscribers).filter(|(_, of)| of.as_deref() == Some(client));
    carried.map(|(name, _)| name.clone()).collect()
}

/// Applies the choices in order.
///
/// # Errors
/// As [`check()`].
pub fn apply(workload: &mut Workload, choices: &[PlacementChoice]) -> Result<(), LoadError> {
    for choice in choices {
        match choice {
            PlacementChoice::Of(group, placement) => {
                // The name of clients stands for all groups that use them.
                for carried in carried_by(workload, group) {
                    workload.placement.groups.remove(&carried);
                }
                workload.placement.put(group, placement.clone());
            }
            PlacementChoice::None => workload.placement = Placements::default(),
        }
    }
    check(workload).map_err(|wrong| LoadError::Group { message: wrong.message, hint: wrong.hint })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::load::{LoadOptions, parse};

    const TEXT: &str = "name: w
devices:
  - {name: cameras, every: 1s, payload: 20B}
  - {name: meters, every: 1s, payload: 20B, client: house}
subscribers:
  - {name: screens, filters: ['#']}
  - {name: hub, client: house, filters: ['#']}
placement: {meters: site=a, hub: site=a, default: split}
";

    fn placed(choices: &[&str]) -> Result<Workload, String> {
        let mut workload = parse("w.yaml", TEXT, &LoadOptions::default()).unwrap();
        let choices: Vec<PlacementChoice> =
            choices.iter().map(|text| PlacementChoice::parse(text)).collect::<Result<_, _>>()?;
        match apply(&mut workload, &choices) {
            Ok(()) => Ok(workload),
            Err(LoadError::Group { message, hint }) => Err(format!("{message}: {hint}")),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn of(workload: &Workload) -> Vec<String> {
        let devices = workload.devices.iter().map(|group| workload.placement_of_devices(group).to_string());
        let subscribers = workload.subscribers.iter().map(|group| workload.placement_of_subscribers(group).to_string());
        devices.chain(subscribers).collect()
    }

    #[test]
    fn a_choice_stands_in_place_of_the_workloads() {
        assert_eq!(of(&placed(&[]).unwrap()), ["split", "site=a", "split", "site=a"]);
        assert_eq!(of(&placed(&["cameras=site=b"]).unwrap()), ["site=b", "site=a", "split", "site=a"]);
        assert_eq!(of(&placed(&["default=site=c"]).unwrap()), ["site=c", "site=a", "site=c", "site=a"]);
        assert_eq!(of(&placed(&["house=site=b"]).unwrap()), ["split", "site=b", "split", "site=b"]);
        assert_eq!(of(&placed(&["none", "house=site=b"]).unwrap()), ["split", "site=b", "split", "site=b"]);
        assert_eq!(of(&placed(&["screens=each site"]).unwrap()), ["split", "site=a", "each site", "site=a"]);
        assert_eq!(of(&placed(&["none", "subscribers=every-node"]).unwrap())[2..], ["replicate", "replicate"]);
    }

    #[test]
    fn what_cannot_be_placed_is_refused_with_what_to_write() {
        for (choices, words) in [
            (&["camera=split"][..], "there is no group `camera` to place: did you mean `cameras`?"),
            (&["cameras=each site"], "devices of `cameras` would be there once for each `site`"),
            (&["default=each site"], "devices of `cameras` would be there once for each `site`"),
            (
                &["meters=site=b"],
                "`meters` (site=b) and `hub` (site=a) share the connections `house`: name the connections: `house=site=b`",
            ),
            (&["none", "hub=site=b"], "share the connections `house`: name the connections: `house=site=b`"),
            (&["site=edge-1"], "`edge-1` is no placement"),
            (&["cameras"], "a placement is written GROUP=PLACEMENT"),
            (&["=split"], "a placement is written GROUP=PLACEMENT"),
            (&["cameras=site="], "`site=` is no label"),
        ] {
            let error = placed(choices).map(|_| ()).unwrap_err();
            assert!(error.contains(words), "{choices:?}: {error}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["none", "cameras=site=edge-1", "dashboards=each site", "default=split"] {
            assert_eq!(PlacementChoice::parse(text).unwrap().to_string(), text);
        }
    }
}
