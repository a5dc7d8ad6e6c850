//! How large everything is: one row a block, counted from the configuration and the database's block size.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::Conf;

const MEGABYTE: u64 = 1 << 20;

/// The tables of one schema, in rows, which are blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Rows of the table that operations touch.
    pub rows: u64,
    /// Rows of the table that is read whole.
    pub scan_rows: u64,
}

impl Layout {
    /// The sizes, or why they cannot be.
    pub fn new(conf: &Conf, block_bytes: u64) -> Result<Self> {
        let rows = conf.scale.blocks(block_bytes);
        let scan_rows = conf.scan_table_sz.blocks(block_bytes);
        let least = conf.work_unit * 2;
        ensure!(
            rows >= least,
            "SCALE={} is {rows} blocks of {block_bytes} bytes: WORK_UNIT={} needs at least {least}",
            conf.scale,
            conf.work_unit
        );
        ensure!(rows <= 1 << 36, "SCALE={} is more than 2^36 blocks of {block_bytes} bytes", conf.scale);
        let layout = Layout { block_bytes, rows, scan_rows };
        if conf.do_hotspot {
            layout.hot_spot(conf)?;
        }
        Ok(layout)
    }

    /// First row of the hot spot and the row behind its last, counted from 1.
    pub fn hot_spot(&self, conf: &Conf) -> Result<(u64, u64)> {
        let first = conf.hotspot_offset_mb * MEGABYTE / self.block_bytes + 1;
        let behind = first + conf.hotspot_mb * MEGABYTE / self.block_bytes;
        ensure!(
            behind <= self.rows + 1,
            "the hot spot, HOTSPOT_OFFSET_MB={} and HOTSPOT_MB={}, ends beyond the table of SCALE={}",
            conf.hotspot_offset_mb,
            conf.hotspot_mb,
            conf.scale
        );
        ensure!(
            behind - first >= conf.work_unit,
            "HOTSPOT_MB={} is {} blocks: WORK_UNIT={} needs at least as many",
            conf.hotspot_mb,
            behind - first,
            conf.work_unit
        );
        Ok((first, behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conf(settings: &[(&str, &str)]) -> Conf {
        let mut conf = Conf::default();
        settings.iter().for_each(|(key, value)| conf.set(key, value).expect("a right value"));
        conf
    }

    #[test]
    fn a_row_is_a_block() {
        let layout = Layout::new(&conf(&[("SCALE", "100M"), ("SCAN_TABLE_SZ", "10")]), 8192).expect("sizes");
        assert_eq!((layout.rows, layout.scan_rows), (12_800, 10));
    }

    #[test]
    fn the_hot_spot_lies_inside() {
        let mut conf = conf(&[("SCALE", "100M"), ("DO_HOTSPOT", "TRUE")]);
        let layout = Layout::new(&conf, 8192).expect("sizes");
        assert_eq!(layout.hot_spot(&conf).expect("inside"), (2049, 3073)); // 8 MB behind the first 16
        conf.set("HOTSPOT_OFFSET_MB", "93").expect("a right value");
        assert!(Layout::new(&conf, 8192).is_err());
    }

    #[test]
    fn too_small_a_table_is_refused() {
        assert!(Layout::new(&conf(&[("SCALE", "127")]), 8192).is_err());
        assert!(Layout::new(&conf(&[("SCALE", "128")]), 8192).is_ok());
    }
}
