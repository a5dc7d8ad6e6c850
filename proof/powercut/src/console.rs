//! The disk by itself, for trying things by hand: one command a line on standard input.
//!
//! ```text
//! cut everything | requests N | pages N | sectors N     the power fails; N percent of the rest are kept
//! off                                                    everything that uses the disk gets EIO
//! on                                                     power again, once nobody has the disk open
//! fail read | write | flush N                            the next N of them fail with EIO
//! heal                                                   none fails any more
//! counts                                                 what was asked so far
//! ```
//!
//! The disk goes with the end of the input; unmount what stands on it before.

use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use fastrand::Rng;
use seawall_faulty_disk::{Disk, Loss, Request};

/// Mounts a disk on the directory `at` and obeys until the input ends.
///
/// # Errors
/// If it cannot be mounted, or the input cannot be read. A command that fails says so and changes nothing.
pub fn run(at: &Path, mib: u64, seed: u64, input: impl BufRead) -> Result<()> {
    let disk = Disk::mount(at, mib << 20)?;
    let mut rng = Rng::with_seed(seed);
    println!("{}", disk.file().display());
    for line in input.lines() {
        let line = line.context("cannot read a command")?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match obey(&disk, &mut rng, &words) {
            Ok(said) => println!("{said}"),
            Err(error) => println!("error: {error:#}"),
        }
    }
    Ok(())
}

fn obey(disk: &Disk, rng: &mut Rng, words: &[&str]) -> Result<String> {
    match words {
        ["cut", what @ ..] => {
            let cut = disk.cut(loss(what)?, rng);
            return Ok(format!(
                "{} sectors were not flushed, {} are kept",
                cut.pending_sectors, cut.kept_sectors
            ));
        }
        ["off"] => disk.off(),
        ["on"] => disk.reboot()?,
        ["fail", request, count] => {
            let request = Request::from_str(request, true).map_err(anyhow::Error::msg)?;
            disk.fail(request, count.parse().context("the count is not a number")?);
        }
        ["heal"] => disk.heal(),
        ["counts"] => return Ok(format!("{:?}", disk.counts())),
        _ => bail!("the commands are cut, off, on, fail, heal and counts"),
    }
    Ok("done".to_owned())
}

fn loss(words: &[&str]) -> Result<Loss> {
    let percent = |kept: &str| match kept.parse() {
        Ok(kept @ 0..=100) => Ok(kept),
        _ => bail!("{kept} is not a percentage"),
    };
    Ok(match words {
        ["everything"] => Loss::Everything,
        ["requests", kept] => Loss::Requests(percent(kept)?),
        ["pages", kept] => Loss::Pages(percent(kept)?),
        ["sectors", kept] => Loss::Sectors(percent(kept)?),
        _ => bail!("cut takes everything, requests N, pages N or sectors N"),
    })
}
