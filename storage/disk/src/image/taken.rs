//! Whose the image is: this process takes it, with its locks and its place in the log, and gives it up for another machine.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering::AcqRel;
use std::time::{Duration, Instant};

use seawall_core::Errno;
use seawall_core::client::Course;
use seawall_media::locks::{self, write};

use super::Image;
use super::file::{check, lock_at, open_true, why_not};
use crate::failure::Refused;
use crate::log::Log;
use crate::sys;

/// How often somebody who has it is looked for.
const PAUSE: Duration = Duration::from_millis(20);

impl<L: Log> Image<L> {
    /// Takes it: its locks, and its place in the log. Nothing if it is ours already. Whoever has it is waited for, so long.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn take(&self, patience: Duration) -> Result<(), Refused> {
        let mut is_ours = locks::lock(&self.is_ours);
        if *is_ours {
            return Ok(());
        }
        let file = self.open_now()?;
        let end = Instant::now() + patience;
        while !lock_at(&self.path, &file, self.is_read_only())? {
            if Instant::now() >= end {
                return Err(Refused::InUse(self.path.clone()));
            }
            std::thread::sleep(PAUSE);
        }
        let entered = self.replace(&file).and_then(|()| self.enter());
        match entered {
            Ok(()) => *is_ours = true,
            Err(_) => self.close()?,
        }
        entered
    }

    /// The same by the descriptor that there is, which is open for writing.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn take_open(&self) -> Result<(), Refused> {
        let mut is_ours = locks::lock(&self.is_ours);
        if !lock_at(&self.path, &self.file, self.is_read_only())? {
            return Err(Refused::InUse(self.path.clone()));
        }
        self.enter()?;
        *is_ours = true;
        Ok(())
    }

    /// The file that has its name now, which must be the one that it was.
    fn open_now(&self) -> Result<File, Refused> {
        let failed = || Refused::failed(self.path.display().to_string());
        let file = open_true(&self.path, self.is_read_only()).map_err(failed())?;
        let (was, is) = (self.file.metadata().map_err(failed())?, check(&self.path, &file)?);
        if (was.dev(), was.ino()) != (is.dev(), is.ino()) {
            return Err(Refused::Replaced(self.path.clone()));
        }
        Ok(file)
    }

    fn replace(&self, file: &File) -> Result<(), Refused> {
        let failed = |e: Errno| Refused::failed(self.path.display().to_string())(e.into());
        sys::replace(&self.file, file).map_err(failed)
    }

    /// Nobody is kept from it by us.
    fn close(&self) -> Result<(), Refused> {
        let file = open_true(&self.path, true).map_err(Refused::failed(self.path.display().to_string()))?;
        self.replace(&file)
    }

    fn enter(&self) -> Result<(), Refused> {
        let stat = self.file.metadata().map_err(Refused::failed(self.path.display().to_string()))?;
        self.bytes.fetch_max(stat.len(), AcqRel);
        match self.log.as_ref().map(|log| self.register(log)) {
            Some(Course::Leave | Course::AskAgain) => {
                Err(Refused::NotManaged(self.path.clone(), why_not(&self.path)))
            }
            _ => Ok(()),
        }
    }

    /// Gives it up, for another machine: all of it is in the file, under its own name, and whoever wants may lock it. Nobody may be
    /// using it here.
    ///
    /// # Errors
    /// [`Refused::NotLetGo`]: it stays ours.
    pub fn let_go(&self) -> Result<(), Refused> {
        let mut is_ours = locks::lock(&self.is_ours);
        if !*is_ours {
            return Ok(());
        }
        if let Some(log) = &self.log {
            let mut place = write(&log.place);
            if place.is_some_and(|file| log.joined.engine().knows(file) && !log.joined.let_go(file)) {
                return Err(Refused::NotLetGo(self.path.clone()));
            }
            *place = None;
        }
        *is_ours = false;
        self.close()
    }

    /// True if it can be let go at all: nobody else remembers what it has. A block cache would, after another machine wrote it.
    pub fn can_move(&self) -> bool {
        self.log.as_ref().is_none_or(|log| log.joined.caching().is_none())
    }
}
