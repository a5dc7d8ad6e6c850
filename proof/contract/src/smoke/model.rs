//! What a worker's bytes must be.

use super::plan::{Operation, Step};

/// The bytes of a region, or of a whole file.
pub type Bytes = Vec<u8>;

/// Where an operation writes, if it writes.
fn target(bytes: &Bytes, operation: Operation) -> Option<(usize, usize)> {
    match operation {
        Operation::Write { offset, length, .. } => Some((offset as usize, length)),
        Operation::Append { length } => Some((bytes.len(), length)),
        _ => None,
    }
}

/// Performs `step` on the model.
pub fn apply(bytes: &mut Bytes, step: Step, operation: Operation) {
    if let Operation::Truncate { length } = operation {
        bytes.resize(length as usize, 0);
    }
    if let Some((offset, length)) = target(bytes, operation) {
        let mut written = vec![0; length];
        step.fill(&mut written);
        overlay(bytes, offset, &written);
    }
}

fn overlay(bytes: &mut Bytes, offset: usize, written: &[u8]) {
    if bytes.len() < offset + written.len() {
        bytes.resize(offset + written.len(), 0);
    }
    bytes[offset..offset + written.len()].copy_from_slice(written);
}

/// Whether `found` is `before` with none, all or the beginning of the interrupted operation.
pub fn explains(before: &Bytes, step: Step, operation: Operation, found: &Bytes) -> bool {
    let mut after = before.clone();
    apply(&mut after, step, operation);
    if found == before || *found == after {
        return true;
    }
    let Some((offset, length)) = target(before, operation) else { return false };
    // The longest beginning of the write that is there; everything else must be as before.
    let present = found
        .iter()
        .skip(offset)
        .zip(&after[offset..offset + length])
        .take_while(|(one, other)| one == other)
        .count();
    let mut cut = before.clone();
    overlay(&mut cut, offset, &after[offset..offset + present]);
    *found == cut
}
