//! What a run changes of its workload.

use std::collections::BTreeMap;

use crate::fault::choice::FaultChoice;
use crate::link::choice::LinkChoice;
use crate::qos::Qos;
use crate::workload::Variant;

/// How a workload is to be loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOptions {
    /// Which reading.
    pub variant: Variant,
    /// Multiplier of device counts, at least 1.
    pub scale: u32,
    /// Delivery level of every device and subscriber, in place of the file's.
    pub qos: Option<Qos>,
    /// `--set KEY=VALUE`, in order: parameters by name, everything else by dotted path.
    pub set: Vec<(String, String)>,
    /// Size of every payload, bytes with the header, in place of the file's.
    pub payload: Option<u32>,
    /// Multiplier of every device's rate; 1 leaves them as they are.
    pub rate: f64,
    /// Links in place of the file's, in order.
    pub links: Vec<LinkChoice>,
    /// Faults in place of the file's.
    pub faults: Vec<FaultChoice>,
    /// Groups whose clients run in processes of their own, besides those of which the file says so; `all` for every one.
    pub isolate: Vec<String>,
    /// Contents of files that the workload names, by the name that it gives them; others are read from disk.
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
