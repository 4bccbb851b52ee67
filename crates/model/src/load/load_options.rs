//! Changes of a workload for a run.

use std::collections::BTreeMap;

use crate::fault::choice::FaultChoice;
use crate::link::choice::LinkChoice;
use crate::qos::Qos;
use crate::workload::Variant;

/// Options for loading a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOptions {
    /// Variant of the workload.
    pub variant: Variant,
    /// Multiplier of device counts, at least 1.
    pub scale: u32,
    /// QoS of every device and subscriber, instead of the file's.
    pub qos: Option<Qos>,
    /// `--set KEY=VALUE`, in order: parameters by name, everything else by dotted path.
    pub set: Vec<(String, String)>,
    /// Size of every payload, bytes with the header, instead of the file's.
    pub payload: Option<u32>,
    /// Multiplier of every device's rate; 1 changes nothing.
    pub rate: f64,
    /// Links that replace those of the file, in order.
    pub links: Vec<LinkChoice>,
    /// Faults that replace those of the file.
    pub faults: Vec<FaultChoice>,
    /// Groups whose clients run in separate processes, besides those that the file isolates; `all` for every group.
    pub isolate: Vec<String>,
    /// Contents of files that the workload names, by their name in the workload; other files are read from disk.
    pub contents: BTreeMap<String, String>,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions {
            variant: Variant::default(),
            scale: 1,
            qos: None,
            set: Vec::new(),
            payload: None,
            rate: 1.0,
            links: Vec::new(),
            faults: Vec::new(),
            isolate: Vec::new(),
            contents: BTreeMap::new(),
        }
    }
}
