//! One server under one load, and a recorder beside it that is stopped and continued in short slices.
//!
//! A machine's speed drifts by more than what a recorder takes, so each slice with the recorder is compared with the
//! mean of its two neighbours without: a drift cancels. As many slices are labelled alike while nothing is done: what
//! they differ by from their neighbours shows whether the method itself pretends a difference. The recorder is stopped
//! by SIGSTOP; continued, it takes at once what was due meanwhile, so it does no less than it would have done.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};

use super::load::{Loaded, Pgbench};
pub use super::record::{Label, Slice};
use super::snap::Snap;
use crate::case::Slicing;
use crate::pg::transactions::Transaction;
use crate::process;

/// How a load is cut.
#[derive(Clone, Debug, PartialEq)]
struct Plan {
    each: Duration,
    labels: Vec<Label>,
}

impl Plan {
    /// Off, on, off, control, off, on, … of a load of so many seconds, whose first slice is not counted: servers and
    /// clients start in it. Every other round begins with the control.
    fn of(slicing: &Slicing, seconds: u64, round: usize) -> Self {
        // A short load has one of each at least.
        let each = f64::min(*slicing.seconds.get_ref(), seconds as f64 / 6.0);
        let pairs = ((seconds as f64 / each + 1e-6) as usize).saturating_sub(2) / 4;
        let four = match round % 2 {
            0 => [Label::With, Label::Without, Label::Control, Label::Without],
            _ => [Label::Control, Label::Without, Label::With, Label::Without],
        };
        let labels = std::iter::once(Label::Without).chain(four.repeat(pairs.max(1))).collect();
        Plan { each: Duration::from_secs_f64(each), labels }
    }
}

/// Runs the load to its end.
pub fn run(
    slicing: &Slicing,
    snap: &Snap,
    mut load: Pgbench,
    seconds: u64,
    round: usize,
) -> Result<(Loaded, Vec<Slice>)> {
    let plan = Plan::of(slicing, seconds, round);
    let begin = Instant::now();
    process::pause(plan.each)?;
    let (mut stopped, mut bounds) = (None, Vec::new());
    for (i, label) in plan.labels.iter().enumerate() {
        match label {
            Label::With => stopped = None,
            _ if stopped.is_none() => stopped = Some(snap.stop()),
            _ => {}
        }
        if load.has_ended()? {
            load.transactions(false)?;
            bail!("the load ended before its last slice");
        }
        bounds.push(wall_us()?);
        let end = begin + plan.each * (i as u32 + 2);
        process::pause(end.saturating_duration_since(Instant::now()))?;
    }
    bounds.push(wall_us()?);
    drop(stopped);
    let done = load.transactions(false)?;
    let slices = plan.labels.iter().zip(rates(&done, &bounds)).map(|(&label, rate)| Slice { label, rate });
    Ok((Loaded::of(&done)?, slices.collect()))
}

fn wall_us() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as u64)
}

/// Transactions a second between each two bounds.
fn rates(done: &[Transaction], bounds: &[u64]) -> Vec<f64> {
    let mut counts = vec![0_u64; bounds.len()];
    for transaction in done {
        // How many bounds lie before it: 0 is before the first slice.
        let slice = bounds.partition_point(|bound| *bound <= transaction.ended_us);
        if let Some(count) = slice.checked_sub(1).and_then(|slice| counts.get_mut(slice)) {
            *count += 1;
        }
    }
    let seconds = bounds.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64 / 1e6);
    counts.iter().zip(seconds).map(|(count, s)| *count as f64 / s.max(1e-6)).collect()
}

/// Slices of one label to the geometric mean of their neighbours. No two of a label share a neighbour.
pub fn ratios(slices: &[Slice], label: Label) -> Vec<f64> {
    let middle =
        slices.windows(3).filter(|three| three[1].label == label && three[1].label != Label::Without);
    middle.map(|three| three[1].rate / (three[0].rate * three[2].rate).sqrt()).collect()
}

#[cfg(test)]
mod tests;
