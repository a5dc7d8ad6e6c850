//! Fronts with a bug.

use seawall_core::Errno;
use seawall_core::format::{Across, NameChange};
use seawall_core::naming::{self, Directory};

use super::{Namer, Place};
use crate::Planted;
use crate::ledger::Act;

impl Namer {
    /// An unlink whose record is made when the call is long over.
    pub(super) fn remove_late(&self, place: &Place) {
        let (folder, name) = place;
        let Some(here) = self.here(*folder) else { return };
        let gone = here.at(name).and_then(|known| known.handle);
        self.world
            .naming(Act::Remove(*folder, name.to_bytes().to_vec()), || {
                naming::beside(&here, || {
                    let lead = (*folder, name.to_bytes().to_vec(), None);
                    self.world.renames(|tree| {
                        tree.find(*folder, name.to_bytes()).map(|_| vec![lead]).ok_or(Errno::NOENT)
                    })
                })
            })
            .unwrap_or_default();
        (0..3).for_each(|_| self.world.give_way());
        let turn = naming::enter(&here);
        if let Some(file) = gone.filter(|_| turn.is_in_log()) {
            turn.log(&NameChange::Gone { name: name.to_bytes(), file, has_others: false });
        }
        turn.finish();
    }

    /// What logs a rename once more, if that is planted.
    pub(super) fn plant_rename(&self, from: &Place, to: &Place) -> Option<impl Fn()> {
        if !self.world.has(Planted::RenamedTwice) || from.0 != to.0 {
            return None;
        }
        let here = self.here(from.0)?;
        let file = here.at(&from.1)?.handle?;
        let (name, to) = (from.1.clone(), to.1.clone());
        Some(move || {
            self.world.give_way();
            let turn = naming::enter(&here);
            if turn.is_in_log() {
                let (name, to, over, across) = (name.to_bytes(), to.to_bytes(), None, Across::No);
                turn.log(&NameChange::Moved { name, to, file, over, exchanged: false, across });
            }
            turn.finish();
        })
    }
}
