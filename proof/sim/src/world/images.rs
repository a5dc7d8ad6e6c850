//! The images of guests' disks: files that `seawall disk` publishes to, and what their guests may find on them.

use std::rc::Rc;

use super::World;
use crate::{Change, Platter};

const ENOSPC: i32 = 28;
const EOPNOTSUPP: i32 = 95;
/// One publish in so many is refused by the file system in its middle.
const REFUSED: u64 = 80;

impl World {
    /// Adds an image with this content, all of it durable.
    pub fn add_image(&self, content: Vec<u8>) -> usize {
        let platter = Platter::holding(content.clone(), self.sector, self.block.is_some() && !self.atomic);
        let index = self.add_file(content);
        self.files.borrow_mut()[index].platter = Some(platter);
        index
    }

    /// The numbers of all images.
    pub fn images(&self) -> impl Iterator<Item = usize> + use<> {
        let files = self.files.borrow();
        let images: Vec<usize> = (0..files.len()).filter(|index| files[*index].platter.is_some()).collect();
        images.into_iter()
    }

    /// Looks at a guest's disk, or tells it of something.
    ///
    /// # Panics
    /// For a file that is no image.
    pub fn platter<R>(&self, index: usize, f: impl FnOnce(&mut Platter) -> R) -> R {
        f(self.files.borrow_mut()[index].platter.as_mut().expect("an image"))
    }

    /// The kernel's part of a change. Now and then it does half of it.
    pub(super) fn publish(&self, index: usize, at: u64, bytes: &[u8]) -> Result<(), i32> {
        if !self.rng.one_in(REFUSED) {
            self.publish_whole(index, at as usize, bytes);
            return Ok(());
        }
        self.publish_whole(index, at as usize, half(bytes));
        self.tell(|| format!("image {index}: no space"));
        self.platter(index, |platter| platter.refuse(at as usize));
        Err(ENOSPC)
    }

    /// A process that is about to die may do half of it.
    fn publish_whole(&self, index: usize, at: usize, bytes: &[u8]) {
        self.step();
        let write = |part: &[u8]| self.change(index, &Change::Write(at, Rc::new(part.to_vec())));
        let logged = self.is_tracked(index);
        self.must_be_logged(index, logged);
        self.tell(|| format!("image {index}: published {at}+{}, tracked {logged}", bytes.len()));
        self.platter(index, |platter| platter.publish(at, logged));
        if self.is_doomed() {
            write(half(bytes));
            self.count(|c| c.halved += 1);
            self.doom();
            self.step();
        }
        write(bytes);
        self.point();
    }

    /// The same of so many zeros by one call, which not every file system knows.
    pub(super) fn publish_zeros(&self, index: usize, at: u64, len: u64) -> Result<(), i32> {
        if self.rng.one_in(2) {
            return Err(EOPNOTSUPP);
        }
        self.publish_whole(index, at as usize, &vec![0; len as usize]);
        Ok(())
    }
}

/// About the first half of what is written.
fn half(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len() / 2 / 512 * 512]
}
