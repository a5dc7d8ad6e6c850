//! The parameters themselves, what they are unless somebody says otherwise, and whether they go together.

use serde::{Deserialize, Serialize};

use super::size::Size;
use crate::slob::stamp::COLUMNS;

/// How many columns an update changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RedoStress {
    /// The first text column and the last one.
    Lite,
    /// All text columns.
    Heavy,
}

impl RedoStress {
    /// The columns by their numbers: 2 and 20, or 2 to 20.
    pub fn columns(self) -> Vec<usize> {
        match self {
            RedoStress::Lite => vec![2, 1 + COLUMNS],
            RedoStress::Heavy => (2..2 + COLUMNS).collect(),
        }
    }
}

/// The parameters of a load. What each means stands in [`SETTINGS`](super::SETTINGS).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "SLOB's names; one table explains them")]
pub struct Conf {
    pub update_pct: u32,
    pub scan_pct: u32,
    /// Seconds.
    pub run_time: u64,
    pub work_loop: u64,
    pub scale: Size,
    pub scan_table_sz: Size,
    pub work_unit: u64,
    pub redo_stress: RedoStress,
    pub load_parallel_degree: u32,
    pub threads_per_schema: u32,
    pub do_hotspot: bool,
    pub hotspot_mb: u64,
    pub hotspot_offset_mb: u64,
    pub hotspot_frequency: u64,
    pub hot_schema_frequency: u64,
    pub think_tm_frequency: u64,
    /// Seconds.
    pub think_tm_min: f64,
    /// Seconds.
    pub think_tm_max: f64,
    pub external_script: String,
    /// Not in the file: an argument of SLOB's scripts.
    pub schemas: u32,
}

impl Default for Conf {
    fn default() -> Self {
        Conf {
            update_pct: 25,
            scan_pct: 0,
            run_time: 300,
            work_loop: 0,
            scale: Size::Blocks(10_000),
            scan_table_sz: Size::Bytes(1 << 20),
            work_unit: 64,
            redo_stress: RedoStress::Lite,
            load_parallel_degree: 8,
            threads_per_schema: 1,
            do_hotspot: false,
            hotspot_mb: 8,
            hotspot_offset_mb: 16,
            hotspot_frequency: 3,
            hot_schema_frequency: 0,
            think_tm_frequency: 0,
            think_tm_min: 0.1,
            think_tm_max: 0.5,
            external_script: String::new(),
            schemas: 1,
        }
    }
}

impl Conf {
    /// Sessions of a run.
    pub fn sessions(&self) -> u32 {
        self.schemas * self.threads_per_schema
    }

    /// What is wrong with the parameters together, in words; each by itself was checked when it was read.
    pub fn contradiction(&self) -> Option<String> {
        if self.think_tm_frequency > 0 && self.think_tm_min > self.think_tm_max {
            return Some(format!(
                "THINK_TM_MIN={} is above THINK_TM_MAX={}",
                self.think_tm_min, self.think_tm_max
            ));
        }
        if self.run_time == 0 && self.work_loop == 0 {
            return Some("RUN_TIME=0 and WORK_LOOP=0: nothing would end the run".to_owned());
        }
        if self.schemas.checked_mul(self.threads_per_schema).is_none_or(|sessions| sessions > 0xffff) {
            return Some("schemas times THREADS_PER_SCHEMA is more than 65535 sessions".to_owned());
        }
        None
    }
}
