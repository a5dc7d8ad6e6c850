//! Calls that change names, and the kernel's part of each.

use std::ffi::CStr;

use seawall_core::Errno;
use seawall_core::naming::{self, Directory, How, Kind, Making};

use super::{Namer, Open, Place};
use crate::Planted;
use crate::ledger::Act;
use crate::tree::{Lead, Tree};

impl Namer {
    /// open(2) with O_CREAT.
    pub(super) fn make(&self, place: &Place) -> Option<Open<'_>> {
        let (folder, name) = place;
        let kernel = |how: Making| match self.find(place) {
            Some(file) => Ok(Open::of(&self.world, file)),
            None if how == Making::Opens => Err(Errno::NOENT),
            None => {
                self.may_make(place)?;
                Ok(Open { world: &self.world, file: self.world.makes(*folder, name.to_bytes()) })
            }
        };
        let open = self.world.naming(Act::Other(vec![*folder]), || {
            let known = self.engine.directories();
            match self.here(*folder) {
                Some(here) if self.world.has(Planted::MadeUnlogged) => {
                    naming::beside(&here, || kernel(Making::Other))
                }
                Some(here) => naming::making(&here, name, kernel),
                None => self.outside(known, &[*folder], false, || kernel(Making::Other)),
            }
        });
        open.ok().filter(|open| self.is_file(open.file))
    }

    /// unlink(2).
    pub(super) fn remove(&self, place: &Place) {
        let (folder, name) = place;
        let kernel = |_| {
            self.kernel(|tree| {
                tree.find(*folder, name.to_bytes()).ok_or(Errno::NOENT)?;
                match tree.folder_at(*folder, name.to_bytes()) {
                    Some(_) => Err(Errno::ISDIR),
                    None => Ok(vec![(*folder, name.to_bytes().to_vec(), None)]),
                }
            })
        };
        if self.world.has(Planted::UnlinkedLate) {
            return self.remove_late(place);
        }
        self.call(Act::Remove(*folder, name.to_bytes().to_vec()), || {
            let known = self.engine.directories();
            match self.here(*folder) {
                Some(here) => naming::removing(&here, name, kernel),
                None => self.outside(known, &[*folder], true, || kernel(false)),
            }
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
                let file = tree.find(old.0, &old.1).ok_or(Errno::NOENT)?;
                if is_new && tree.find(new.0, &new.1).is_some() {
                    return Err(Errno::EXIST);
                }
                if !tree.is_there(new.0) {
                    return Err(Errno::NOENT);
                }
                // Two names of the same file stay.
                let is_same = tree.find(new.0, &new.1) == Some(file);
                if !is_same {
                    may_move(tree, &old, &new)?;
                }
                let leads = vec![(old.0, old.1.clone(), None), (new.0, new.1.clone(), Some(file))];
                Ok(if is_same { Vec::new() } else { leads })
            })
        };
        self.call(Act::Move(old.clone(), new.clone()), || {
            let known = self.engine.directories();
            match (self.here(from.0), self.here(to.0)) {
                (Some(here), _) if from.0 == to.0 => {
                    let source = here.at(&from.1);
                    naming::moving_within(&here, ((&from.1, source), &to.1), How::Plain, kernel)
                }
                (Some(here), Some(there)) => {
                    naming::moving_across((&here, &from.1), (&there, &to.1), How::Plain, kernel)
                }
                (source, target) => {
                    let moves = source.as_ref().and_then(|here| here.at(&from.1));
                    self.outside(known, &[from.0, to.0], true, || {
                        // No record says where they are.
                        if moves.is_none_or(|moves| moves.kind == Kind::Directory) {
                            self.leaving(to);
                            self.leaving(from);
                        }
                        match source.or(target) {
                            Some(here) => naming::other(&here, || kernel(false)),
                            None => kernel(false),
                        }
                    })
                }
            }
        });
        twice.iter().for_each(|again| again());
    }

    /// renameat2(2) with RENAME_EXCHANGE, within a directory.
    pub(super) fn exchange(&self) {
        let ((folder, name), (_, other)) = (self.place(), self.place());
        let kernel = |_| {
            self.kernel(|tree| {
                let find = |name: &CStr| tree.find(folder, name.to_bytes()).ok_or(Errno::NOENT);
                let (one, two) = (find(&name)?, find(&other)?);
                let lead = |name: &CStr, file| (folder, name.to_bytes().to_vec(), Some(file));
                Ok(if one == two { Vec::new() } else { vec![lead(&name, two), lead(&other, one)] })
            })
        };
        let act = Act::Exchange(folder, name.to_bytes().to_vec(), other.to_bytes().to_vec());
        self.call(act, || {
            let known = self.engine.directories();
            if let Some(here) = self.here(folder) {
                let source = here.at(&name);
                return naming::moving_within(&here, ((&name, source), &other), How::Exchange, kernel);
            }
            self.outside(known, &[folder], true, || {
                [&name, &other].iter().for_each(|name| self.leaving(&(folder, (*name).clone())));
                kernel(false)
            })
        });
    }

    /// link(2).
    pub(super) fn link(&self, from: &Place, to: &Place) {
        let [old, new] = [from, to].map(|(folder, name)| (*folder, name.to_bytes().to_vec()));
        let kernel = || {
            self.may_make(to)?;
            self.kernel(|tree| {
                let file = tree.find(old.0, &old.1).ok_or(Errno::NOENT)?;
                match tree.folder_at(old.0, &old.1) {
                    Some(_) => Err(Errno::PERM),
                    None => Ok(vec![(new.0, new.1.clone(), Some(file))]),
                }
            })
        };
        self.call(Act::Other(vec![from.0, to.0]), || {
            let known = self.engine.directories();
            match (self.here(from.0), self.here(to.0)) {
                (Some(here), _) if from.0 == to.0 => naming::linking_within(&here, (&from.1, &to.1), kernel),
                (Some(here), Some(there)) => {
                    naming::linking_across((&here, &from.1), (&there, &to.1), kernel)
                }
                (None, Some(there)) => naming::other(&there, kernel),
                (Some(here), None) => self.outside(known, &[to.0], true, || naming::beside(&here, kernel)),
                (None, None) => self.outside(known, &[to.0], true, kernel),
            }
        });
    }

    /// symlink(2).
    pub(super) fn point(&self, place: &Place) {
        let (folder, name) = place;
        let target = self.world.rng.pick(&[&b"a"[..], b"b"]);
        let kernel = || {
            self.may_make(place)?;
            self.world.points(*folder, name.to_bytes(), target);
            Ok(())
        };
        self.call(Act::Other(vec![*folder]), || {
            let known = self.engine.directories();
            match self.here(*folder) {
                Some(here) => naming::making_new(&here, name, kernel),
                None => self.outside(known, &[*folder], false, kernel),
            }
        });
    }

    /// A call, whose error its program expects.
    pub(super) fn call(&self, act: Act, call: impl FnOnce() -> Result<(), Errno>) {
        let done = self.world.naming(act, call);
        self.world.tell(|| format!("{done:?}"));
    }

    pub(super) fn kernel(&self, leads: impl FnOnce(&Tree) -> Result<Vec<Lead>, Errno>) -> Result<(), Errno> {
        self.world.renames(leads)
    }
}

/// What rename(2) refuses.
fn may_move(tree: &Tree, old: &(usize, Vec<u8>), new: &(usize, Vec<u8>)) -> Result<(), Errno> {
    let [moves, over] = [old, new].map(|(folder, name)| tree.folder_at(*folder, name));
    match (moves, over) {
        (Some(moves), _) if tree.is_within(new.0, moves) => Err(Errno::INVAL),
        (Some(_), None) if tree.find(new.0, &new.1).is_some() => Err(Errno::NOTDIR),
        (None, Some(_)) => Err(Errno::ISDIR),
        (_, Some(over)) if !tree.names(over).is_empty() => Err(Errno::NOTEMPTY),
        _ => Ok(()),
    }
}
