//! One table's rows.

use std::collections::HashSet;

use super::CheckReport;
use crate::slob::ledger::Sums;
use crate::slob::stamp::{COLUMNS, Stamp};
use crate::slob::store::Row;

/// An operation, as its rows name it.
pub type Operation = Stamp;

/// Takes rows in any order.
pub struct TableCheck<'a> {
    schema: u32,
    /// By custid, from 1 on: how often the row was updated; none while it was not seen.
    updates: Vec<Option<u64>>,
    /// Operations of cut runs that are there although they were not acknowledged.
    surprising: HashSet<Operation>,
    report: &'a mut CheckReport,
}

impl<'a> TableCheck<'a> {
    /// For a table of so many rows.
    pub fn new(schema: u32, rows: u64, report: &'a mut CheckReport) -> Self {
        TableCheck { schema, updates: vec![None; rows as usize], surprising: HashSet::new(), report }
    }

    /// Looks at a row.
    pub fn see(&mut self, row: &Row<'_>, sums: &Sums) {
        if let Err(wrong) = self.look(row, sums) {
            self.report.problem(format!("schema {} row {}: {wrong}", self.schema, row.custid));
        }
    }

    /// How often each row was updated, and the operations that nobody saw acknowledged. Rows that were not seen are problems.
    pub fn finish(self) -> (Vec<Option<u64>>, HashSet<Operation>) {
        for (custid, _) in (1..).zip(&self.updates).filter(|(_, updates)| updates.is_none()) {
            self.report.problem(format!("schema {} row {custid}: missing", self.schema));
        }
        (self.updates, self.surprising)
    }

    fn look(&mut self, row: &Row<'_>, sums: &Sums) -> Result<(), String> {
        let place = row.custid.checked_sub(1).and_then(|place| self.updates.get_mut(place as usize));
        if place.ok_or("there is no such row")?.replace(row.updates).is_some() {
            return Err("there twice".to_owned());
        }
        let last = operations(row)?;
        if (last.run == 0) != (row.updates == 0) {
            return Err(format!("updated {} times, but last written by {}", row.updates, name(&last)));
        }
        if sums.is_acknowledged(&last) {
            return Ok(());
        }
        if !sums.cut.contains(&last.run) {
            return Err(format!("written by {}, which was never acknowledged", name(&last)));
        }
        self.surprising.insert(last);
        Ok(())
    }
}

/// The operation that wrote c2 and c20, if the columns agree.
fn operations(row: &Row<'_>) -> Result<Stamp, String> {
    let read = |number: usize| -> Result<Stamp, String> {
        let stamp =
            Stamp::read(row.columns[number], number).map_err(|why| format!("c{}: {why}", number + 2))?;
        if !stamp.covers(row.custid) {
            return Err(format!("c{}: another row's content, by {}", number + 2, name(&stamp)));
        }
        Ok(stamp)
    };
    let (first, last) = (read(0)?, read(COLUMNS - 1)?);
    if first != last {
        return Err(format!("half updated: c2 by {}, c20 by {}", name(&first), name(&last)));
    }
    let inner = read(1)?;
    for number in 2..COLUMNS - 1 {
        let other = read(number)?;
        if other != inner {
            return Err(format!("half updated: c3 by {}, c{} by {}", name(&inner), number + 2, name(&other)));
        }
    }
    Ok(first)
}

fn name(stamp: &Stamp) -> String {
    match stamp.run {
        0 => "the setup".to_owned(),
        run => format!("operation {} of session {} in run {run}", stamp.seq, stamp.thread),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPDATE: Stamp = Stamp { run: 7, thread: 0, seq: 1, r: 11, unit: 8 };

    fn problems(columns: [String; COLUMNS], updates: u64, sums: &Sums) -> Vec<String> {
        let mut report = CheckReport::default();
        let mut table = TableCheck::new(1, 10, &mut report);
        let columns = std::array::from_fn(|number| columns[number].as_str());
        table.see(&Row { custid: 5, updates, columns }, sums);
        let seen = table.updates.iter().flatten().count();
        table.finish();
        assert_eq!(seen, 1);
        report.examples.truncate(report.examples.len() - 9); // the rows that were not seen
        report.examples
    }

    fn cut() -> Sums {
        let mut sums = Sums::default();
        sums.cut.insert(UPDATE.run);
        sums
    }

    #[test]
    fn a_right_row_is_right() {
        assert_eq!(problems(Stamp::loaded(5).columns(), 0, &Sums::default()), [""; 0]);
        assert_eq!(problems(UPDATE.columns(), 1, &cut()), [""; 0]);
    }

    #[test]
    fn a_half_updated_row_is_found() {
        let mut columns = UPDATE.columns();
        columns[7] = Stamp::loaded(5).column(7);
        assert!(problems(columns, 1, &cut())[0].contains("half updated"));
        let mut columns = Stamp::loaded(5).columns();
        columns[18] = UPDATE.column(18);
        assert!(problems(columns, 1, &cut())[0].contains("half updated"));
    }

    #[test]
    fn another_rows_content_a_wrong_count_and_an_unknown_update_are_found() {
        assert!(problems(Stamp::loaded(6).columns(), 0, &cut())[0].contains("another row's"));
        assert!(problems(Stamp::loaded(5).columns(), 1, &cut())[0].contains("updated 1 times"));
        assert!(problems(UPDATE.columns(), 1, &Sums::default())[0].contains("never acknowledged"));
    }
}
