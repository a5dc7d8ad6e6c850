//! What a session does next.
//!
//! Every choice that SLOB's parameters make: update, read or scan; which schema; which rows; hot spot; rest.

use std::time::Duration;

use anyhow::Result;

use super::{Conf, Layout};
use crate::random::Random;

/// The rows strictly between `r - unit` and `r`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// SLOB's r.
    pub r: u64,
    /// WORK_UNIT.
    pub unit: u64,
}

impl Rows {
    /// The row before the first one.
    pub fn above(self) -> u64 {
        self.r - self.unit
    }

    /// How many there are.
    pub fn count(self) -> u64 {
        self.unit - 1
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Counts rows through the index.
    Read(Rows),
    /// Changes rows.
    Update(Rows),
    /// Reads the scan table.
    Scan,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What is done.
    pub work: Work,
    /// Where, counted from 1.
    pub schema: u32,
    /// The rest after it.
    pub think: Option<Duration>,
}

/// Chooses a session's operations.
#[derive(Clone, Debug)]
pub struct Picker {
    conf: Conf,
    /// First row that may be touched, and the row behind the last one.
    stretch: (u64, u64),
    hot_spot: Option<(u64, u64)>,
    schema: u32,
    random: Random,
    picked: u64,
}

impl Picker {
    /// For a session of `schema` that works on the rows from `stretch.0` up to, not including, `stretch.1`.
    pub fn new(
        conf: &Conf,
        layout: &Layout,
        schema: u32,
        stretch: (u64, u64),
        random: Random,
    ) -> Result<Self> {
        let hot_spot = if conf.do_hotspot { Some(layout.hot_spot(conf)?) } else { None };
        Ok(Picker { conf: conf.clone(), stretch, hot_spot, schema, random, picked: 0 })
    }

    /// The next operation.
    pub fn pick(&mut self) -> Operation {
        self.picked += 1;
        let schema = if self.is_every(self.conf.hot_schema_frequency) { 1 } else { self.schema };
        let work = if self.random.percent(self.conf.update_pct) {
            Work::Update(self.rows())
        } else if self.random.percent(self.conf.scan_pct) {
            Work::Scan
        } else {
            Work::Read(self.rows())
        };
        let think = self.is_every(self.conf.think_tm_frequency).then(|| self.think());
        Operation { work, schema, think }
    }

    /// Whether it is this operation's turn, of each `frequency`.
    fn is_every(&self, frequency: u64) -> bool {
        frequency > 0 && self.picked.is_multiple_of(frequency)
    }

    fn rows(&mut self) -> Rows {
        let hot = self.hot_spot.filter(|_| self.is_every(self.conf.hotspot_frequency));
        let (first, behind) = hot.unwrap_or(self.stretch);
        let unit = self.conf.work_unit;
        Rows { r: self.random.between(first + unit - 1, behind), unit }
    }

    fn think(&mut self) -> Duration {
        let (shortest, longest) = (self.conf.think_tm_min, self.conf.think_tm_max);
        Duration::from_secs_f64(shortest + (longest - shortest) * self.random.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(settings: &[(&str, &str)], count: usize) -> Vec<Operation> {
        let mut conf = Conf::default();
        for (key, value) in [("SCALE", "100M"), ("UPDATE_PCT", "100")].iter().chain(settings) {
            conf.set(key, value).expect("a right value");
        }
        let layout = Layout::new(&conf, 8192).expect("sizes");
        let picker = Picker::new(&conf, &layout, 3, (1, layout.rows + 1), Random::new(1, 1));
        let mut picker = picker.expect("a picker");
        (0..count).map(|_| picker.pick()).collect()
    }

    fn rows(operation: &Operation) -> Rows {
        match operation.work {
            Work::Read(rows) | Work::Update(rows) => rows,
            Work::Scan => panic!("a scan"),
        }
    }

    #[test]
    fn all_rows_are_reached_and_no_others() {
        let picked = picks(&[("SCALE", "200")], 20_000);
        let lowest = picked.iter().map(|o| rows(o).above() + 1).min();
        let highest = picked.iter().map(|o| rows(o).r - 1).max();
        assert_eq!((lowest, highest), (Some(1), Some(200)));
    }

    #[test]
    fn every_third_operation_is_in_the_hot_spot() {
        let picked = picks(&[("DO_HOTSPOT", "TRUE")], 30_000);
        let is_inside = |rows: Rows| rows.above() + 1 >= 2049 && rows.r <= 3073;
        assert!(picked.chunks(3).all(|three| is_inside(rows(&three[2]))));
        let others = picked.iter().enumerate().filter(|(i, _)| i % 3 != 2);
        let by_chance = others.filter(|(_, o)| is_inside(rows(o))).count();
        assert!((1000..2100).contains(&by_chance), "{by_chance} of 20000, where 8 % are expected");
    }

    #[test]
    fn percentages() {
        let picked = picks(&[("UPDATE_PCT", "20"), ("SCAN_PCT", "50")], 10_000);
        let count = |is: fn(&Work) -> bool| picked.iter().filter(|o| is(&o.work)).count();
        let (updates, scans) = (count(|w| matches!(w, Work::Update(_))), count(|w| *w == Work::Scan));
        assert!((1800..2200).contains(&updates) && (3800..4200).contains(&scans), "{updates} {scans}");
        assert!(picks(&[], 1000).iter().all(|o| matches!(o.work, Work::Update(_))));
    }

    #[test]
    fn hot_schema_and_rests_come_in_turn() {
        let picked = picks(&[("HOT_SCHEMA_FREQUENCY", "4"), ("THINK_TM_FREQUENCY", "5")], 1000);
        for (operation, number) in picked.iter().zip(1..) {
            assert_eq!(operation.schema, if number % 4 == 0 { 1 } else { 3 });
            assert_eq!(operation.think.is_some(), number % 5 == 0);
            let fits = |rest: Duration| (0.1..=0.5).contains(&rest.as_secs_f64());
            assert!(operation.think.is_none_or(fits));
        }
    }
}
