//! A workload without a run: its fleet and its links; nothing is started.

use pubmark_model::fleet::Fleet;
use pubmark_model::workload::Workload;

use super::run;

/// The groups of the workload, and their links.
pub fn text(workload: &Workload) -> String {
    let fleet = Fleet::new(workload, 1);
    let counted = |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    let devices = counted(fleet.device_count(), "device");
    let subscribers = counted(fleet.subscribers().len(), "subscriber");
    let variant = workload.variant.as_str();
    let head = format!("  workload  {}, {variant}: {devices}, {subscribers}\n", workload.name);
    match run::links(workload) {
        links if links.is_empty() => head + "  links     none\n",
        links => head + &links,
    }
}
