//! The live records of a log, in order.

use super::Found;

/// Records by LSN, each with its parts in order. There may be millions, most of one part.
#[derive(Debug, Default)]
pub struct Live {
    /// By LSN, and within a record by its parts' numbers.
    parts: Vec<Found>,
    records: usize,
}

impl Live {
    /// Adds a record, with the highest LSN so far.
    pub(super) fn push(&mut self, record: &[Found]) {
        let lsn = |part: &Found| part.header.lsn;
        debug_assert!(
            record.first().map(lsn) > self.parts.last().map(lsn),
            "records are added in order, each once"
        );
        self.parts.extend_from_slice(record);
        self.records += 1;
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// The record with this LSN.
    pub fn get(&self, lsn: u64) -> Option<&[Found]> {
        let begin = self.parts.partition_point(|part| part.header.lsn < lsn);
        self.parts[begin..].chunk_by(Found::is_of_same).next().filter(|record| record[0].header.lsn == lsn)
    }

    /// All records, in order.
    pub fn records(&self) -> impl Iterator<Item = &[Found]> {
        self.parts.chunk_by(Found::is_of_same)
    }
}
