//! What a system may use of the machine, as people write it.

/// Limits of each broker of a system.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceLimits {
    /// As written: `cpu=0.5,memory=256MB`, or the name of a set.
    pub asked: String,
    /// CPU time over time: 0.5 is half a core.
    pub cpu: Option<f64>,
    /// Memory, bytes; without swap.
    pub memory_bytes: Option<u64>,
    /// Cores that it may run on.
    pub cores: Option<u32>,
}
