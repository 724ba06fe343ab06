//! Which limit a program reached, in words for people and models.

use std::fmt;
use std::time::Duration;

/// A limit of the sandbox that a program reached: it was ended for it, or ended because of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReachedLimit {
    /// So many processes at a time.
    Processes(u32),
    /// So many bytes of memory, of all its processes together.
    Memory(u64),
    /// So much processor time, of all its processes together.
    Cpu(Duration),
    /// So much processor time of one process.
    CpuPerProcess(Duration),
    /// So many bytes in one file.
    FileSize(u64),
    /// None, but nothing held its limits any more: somebody took its control group away.
    GroupLost,
}

impl ReachedLimit {
    /// Returns the key of the configuration that sets it.
    pub const fn key(&self) -> Option<&'static str> {
        Some(match self {
            Self::Processes(_) => "sandbox.limits.processes",
            Self::Memory(_) => "sandbox.limits.memory",
            Self::Cpu(_) => "sandbox.limits.cpu",
            Self::CpuPerProcess(_) => "sandbox.limits.cpuPerProcess",
            Self::FileSize(_) => "sandbox.limits.fileSize",
            Self::GroupLost => return None,
        })
    }
}

impl fmt::Display for ReachedLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = match self {
            Self::Processes(most) => format!("{most} processes at a time"),
            Self::Memory(bytes) => {
                format!("{} of memory of all its processes together", Bytes(*bytes))
            }
            Self::Cpu(time) => format!("{time:?} of processor time of all its processes together"),
            Self::CpuPerProcess(time) => format!("{time:?} of processor time of one process"),
            Self::FileSize(bytes) => format!("{} in one file", Bytes(*bytes)),
            Self::GroupLost => {
                return formatter
                    .write_str("the control group that held its limits was taken away");
            }
        };
        let key = self.key().unwrap_or_default();
        write!(formatter, "it reached its limit of {limit} (`{key}`)")
    }
}

/// Bytes in the largest unit that shows them exactly, as they are written in a configuration.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match units.into_iter().find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size)) {
            Some((unit, size)) => write!(formatter, "{}{unit}", self.0 / size),
            None => write!(formatter, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_how_much_it_was_and_which_key_sets_it() {
        let minutes = Duration::from_mins(10);
        let cases = [
            (
                ReachedLimit::Processes(512),
                "it reached its limit of 512 processes at a time (`sandbox.limits.processes`)",
            ),
            (
                ReachedLimit::Memory(4 << 30),
                "it reached its limit of 4GiB of memory of all its processes together \
                 (`sandbox.limits.memory`)",
            ),
            (
                ReachedLimit::Cpu(minutes),
                "it reached its limit of 600s of processor time of all its processes together \
                 (`sandbox.limits.cpu`)",
            ),
            (
                ReachedLimit::CpuPerProcess(minutes),
                "it reached its limit of 600s of processor time of one process \
                 (`sandbox.limits.cpuPerProcess`)",
            ),
            (
                ReachedLimit::FileSize(1_000_000),
                "it reached its limit of 1000000 bytes in one file (`sandbox.limits.fileSize`)",
            ),
            (ReachedLimit::GroupLost, "the control group that held its limits was taken away"),
        ];
        for (limit, said) in cases {
            assert_eq!(limit.to_string(), said);
        }
    }
}
