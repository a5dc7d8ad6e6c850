//! `seawall disk IMAGE --resize SIZE`: a disk becomes larger, with its guest at work, or an image that nobody serves.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use seawall_disk::control::{Asked, ask};

use super::served;
use crate::size;

/// Makes it larger. `socket`: where it is served, if that is known.
pub fn resize(image: &Path, socket: Option<&Path>, bytes: u64) -> Result<()> {
    let served = socket.map(Path::to_owned).or_else(|| served::at(image));
    let Some(socket) = served else {
        seawall_disk::grow(image, bytes)?;
        outln!("{}: {}. No process serves it", image.display(), size::human(bytes));
        return Ok(());
    };
    let answer = ask(&socket, &Asked::Resize(bytes));
    let answer =
        answer.with_context(|| format!("cannot ask the process that serves {}", socket.display()))?;
    let seen = answer.map_err(|why| anyhow!(why))?;
    let guest = if seen.queues > 0 { ", and its guest was notified" } else { "" };
    outln!("{}: {}{guest}", image.display(), size::human(seen.bytes));
    Ok(())
}
