//! How much of the disks' time changes and rebuilds may take.

use std::path::PathBuf;

use super::notes::{Notes, Set, md_name};
use super::status;
use super::wish::By;
use crate::error::Error;
use crate::host::Host;
use crate::plan::{Act, Plan, Step};

/// How much of the disks' time a rebuild may take, 1 to 11: as ASM counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Power(pub(super) u32);

impl Power {
    /// The highest: as fast as the disks are.
    pub const FULL: u32 = 11;

    /// From 1 to 11.
    ///
    /// # Errors
    /// Another number.
    pub fn new(number: u32) -> Result<Self, Error> {
        match number {
            1..=Self::FULL => Ok(Self(number)),
            _ => Err(Error::refused(
                "--power takes 1 (leaves the database alone) to 11 (as fast as the disks are)",
            )),
        }
    }

    /// KiB a second for each disk, at most: 4 MiB at 1, twice as much at each step.
    fn most(self) -> Option<u64> {
        (self.0 < Self::FULL).then(|| 4096 << (self.0 - 1))
    }

    /// The share of the time that is worked, of steps that cannot be slowed down themselves.
    pub fn share(self) -> f64 {
        f64::from(self.0) / f64::from(Self::FULL)
    }

    /// The step that sets md's limits. md holds to the least even while others use the disks.
    pub(super) fn of_md(self, name: &str) -> Step {
        let most = self.most().map_or_else(|| "4194304".to_owned(), |most| most.to_string());
        let least = self.most().map_or(1 << 20, |most| most / 4).to_string();
        let file = |file: &str| PathBuf::from(format!("/sys/block/{name}/md/{file}"));
        let set = |path, value| Act::Set { path, value };
        let acts = vec![set(file("sync_speed_max"), most), set(file("sync_speed_min"), least)];
        Step::new(format!("power {}", self.0), Act::All(acts))
    }
}

/// How fast a rebuild that is under way goes on; with btrfs what is started here.
///
/// # Errors
/// What the kernel or btrfs said.
pub fn rebalance(
    host: &dyn Host,
    recorded: &Plan,
    power: Power,
    mut say: impl FnMut(&str),
) -> Result<(), Error> {
    let notes = Notes::of(recorded)?;
    for set in &notes.sets {
        match notes.by {
            By::Md => {
                let name = md_name(host, set)?;
                power.of_md(&name).act.carry_out(host)?;
                say(&format!("{}: {}", set.name, status::words_of(host, &name)));
            }
            By::Btrfs => in_steps(host, set, power, &mut say)?,
        }
    }
    Ok(())
}

/// btrfs knows no speed: a chunk of a GiB is moved, and then the disks are left alone for as long as the power says.
fn in_steps(host: &dyn Host, set: &Set, power: Power, say: &mut impl FnMut(&str)) -> Result<(), Error> {
    let point = set.mount.to_string_lossy().into_owned();
    // Chunks that are nearly full are as good where they are; what is spread has room afterwards.
    for filling in [10, 30, 50, 70, 90] {
        let usage = format!("-dusage={filling}");
        let words = ["btrfs", "balance", "start", &usage, "-dlimit=4", &point].map(str::to_owned);
        let begin = std::time::Instant::now();
        let said = host.run(&words, "").map_err(|why| Error::Step { step: "balance".into(), why })?;
        say(said.lines().last().unwrap_or_default());
        host.pause(begin.elapsed().mul_f64(1.0 / power.share() - 1.0));
    }
    Ok(())
}
