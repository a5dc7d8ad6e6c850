//! The disk with the database's files: one, which is where the log was taken over last.

use seawall_wire::keeper::is_older_than_files;

use crate::scratch::{COMMITS, Files, Image, STATE, newest};

#[derive(Default)]
pub struct Volume {
    pub files: Files,
    /// The turn in which its host went on alone.
    pub mark: Option<u64>,
    /// The host that has it.
    pub host: usize,
    /// It had what nobody was acknowledged, and a log that knows less of it was replayed: files are as after a crash of a disk
    /// that was given pages before anybody synced them.
    pub is_mixed: bool,
}

impl Volume {
    /// A host that has taken the log over gets the disk, and replays into its files what is live.
    pub fn recover(&mut self, host: usize, image: &Image) {
        self.host = host;
        let (retired, complete_since) = (image[STATE].order, image[STATE].by);
        if self.mark.is_some_and(|alone| is_older_than_files(complete_since, alone)) {
            return;
        }
        // Whatever is there: a replay knows no better.
        self.is_mixed |= newest(&self.files) > newest(&image[..COMMITS]).max(retired);
        for (file, record) in self.files.iter_mut().zip(&image[..COMMITS]) {
            if record.order > retired {
                *file = *record;
            }
        }
    }
}
