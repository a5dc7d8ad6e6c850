//! Calls that change names, and the kernel's part of each.

use seawall_core::Errno;
use seawall_core::naming::{self, Directory, How};

use super::{Namer, Open, Place};
use crate::Planted;
use crate::ledger::Act;

const ENOENT: i32 = 2;
const EEXIST: i32 = 17;

impl Namer {
    /// open(2) with O_CREAT.
    pub(super) fn make(&self, place: &Place) -> Option<Open<'_>> {
        let (folder, name) = place;
        let kernel = |_| match self.find(place) {
            Some(file) => Ok(Open::of(&self.world, file)),
            None => Ok(Open { world: &self.world, file: self.world.makes(*folder, name.to_bytes()) }),
        };
        let open = self.world.naming(Act::Other(vec![*folder]), || match self.here(*folder) {
            Some(here) if self.world.has(Planted::MadeUnlogged) => naming::beside(&here, || kernel(false)),
            Some(here) => naming::making(&here, name, kernel),
            None => kernel(false),
        });
        open.ok().filter(|open| !self.is_link(open.file))
    }

    /// unlink(2).
    pub(super) fn remove(&self, place: &Place) {
        let (folder, name) = place;
        let kernel = |_| {
            self.kernel(|tree| {
                tree.find(*folder, name.to_bytes()).ok_or(ENOENT)?;
                Ok(vec![(*folder, name.to_bytes().to_vec(), None)])
            })
        };
        if self.world.has(Planted::UnlinkedLate) {
            return self.remove_late(place);
        }
        self.call(Act::Remove(*folder, name.to_bytes().to_vec()), || match self.here(*folder) {
            Some(here) => naming::removing(&here, name, kernel),
            None => kernel(false),
        });
    }

    /// rename(2).
    pub(super) fn rename(&self, from: &Place, to: &Place) {
        let [old, new] = [from, to].map(|(folder, name)| (*folder, name.to_bytes().to_vec()));
        let twice = self.plant_rename(from, to);
        // RENAME_NOREPLACE: the kernel refuses what the log has a record of by then.
        let is_new = self.world.rng.one_in(6);
        let kernel = |_| {
            self.kernel(|tree| {
                let file = tree.find(old.0, &old.1).ok_or(ENOENT)?;
                if is_new && tree.find(new.0, &new.1).is_some() {
                    return Err(EEXIST);
                }
                // Two names of the same file stay.
                let is_same = tree.find(new.0, &new.1) == Some(file);
                let leads = vec![(old.0, old.1.clone(), None), (new.0, new.1.clone(), Some(file))];
                Ok(if is_same { Vec::new() } else { leads })
            })
        };
        self.call(Act::Move(old.clone(), new.clone()), || match (self.here(from.0), self.here(to.0)) {
            (Some(here), _) if from.0 == to.0 => {
                let source = here.at(&from.1);
                naming::moving_within(&here, ((&from.1, source), &to.1), How::Plain, kernel)
            }
            (Some(here), Some(there)) => {
                naming::moving_across((&here, &from.1), (&there, &to.1), How::Plain, kernel)
            }
            (Some(here), None) | (None, Some(here)) => naming::other(&here, || kernel(false)),
            (None, None) => kernel(false),
        });
        twice.iter().for_each(|again| again());
    }

    /// renameat2(2) with RENAME_EXCHANGE, within a directory.
    pub(super) fn exchange(&self) {
        let ((folder, name), (_, other)) = (self.place(), self.place());
        let kernel = |_| {
            self.kernel(|tree| {
                let [one, two] = [&name, &other].map(|name| tree.find(folder, name.to_bytes()).ok_or(ENOENT));
                let [one, two] = [one?, two?];
                let lead = |name: &std::ffi::CString, file| (folder, name.to_bytes().to_vec(), Some(file));
                Ok(if one == two { Vec::new() } else { vec![lead(&name, two), lead(&other, one)] })
            })
        };
        let act = Act::Exchange(folder, name.to_bytes().to_vec(), other.to_bytes().to_vec());
        self.call(act, || match self.here(folder) {
            Some(here) => {
                let source = here.at(&name);
                naming::moving_within(&here, ((&name, source), &other), How::Exchange, kernel)
            }
            None => kernel(false),
        });
    }

    /// link(2).
    pub(super) fn link(&self, from: &Place, to: &Place) {
        let [old, new] = [from, to].map(|(folder, name)| (*folder, name.to_bytes().to_vec()));
        let kernel = || {
            self.kernel(|tree| {
                let file = tree.find(old.0, &old.1).ok_or(ENOENT)?;
                let is_taken = tree.find(new.0, &new.1).is_some();
                if is_taken { Err(EEXIST) } else { Ok(vec![(new.0, new.1.clone(), Some(file))]) }
            })
        };
        self.call(Act::Other(vec![from.0, to.0]), || match (self.here(from.0), self.here(to.0)) {
            (Some(here), _) if from.0 == to.0 => naming::linking_within(&here, (&from.1, &to.1), kernel),
            (Some(here), Some(there)) => naming::linking_across((&here, &from.1), (&there, &to.1), kernel),
            (None, Some(there)) => naming::other(&there, kernel),
            (Some(here), None) => naming::beside(&here, kernel),
            (None, None) => kernel(),
        });
    }

    /// symlink(2).
    pub(super) fn point(&self, place: &Place) {
        let (folder, name) = place;
        let target = self.world.rng.pick(&[&b"a"[..], b"b"]);
        let kernel = || match self.find(place) {
            Some(_) => Err(Errno::EXIST),
            None => {
                self.world.points(*folder, name.to_bytes(), target);
                Ok(())
            }
        };
        self.call(Act::Other(vec![*folder]), || match self.here(*folder) {
            Some(here) => naming::making_new(&here, name, kernel),
            None => kernel(),
        });
    }

    /// A call, whose error its program expects.
    fn call(&self, act: Act, call: impl FnOnce() -> Result<(), Errno>) {
        let done = self.world.naming(act, call);
        self.world.tell(|| format!("{done:?}"));
    }

    fn kernel(
        &self,
        leads: impl FnOnce(&crate::tree::Tree) -> Result<Vec<crate::tree::Lead>, i32>,
    ) -> Result<(), Errno> {
        self.world.renames(leads).map_err(Errno::from_raw_os_error)
    }
}
