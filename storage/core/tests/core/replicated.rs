//! A log without a device: what a keeper gets that is to have its image.

use crate::common::World;
use seawall_core::pool::PoolError;
use seawall_core::pool::replicated::InMemory;
use seawall_wire::keeper::{Epoch, Position};

const IMAGE: usize = 16 << 20;

/// The image of a log with records in it, which nobody has replayed yet.
fn image() -> (Vec<u8>, [u8; 16]) {
    let world = World::new(IMAGE as u64);
    let m = world.manage("wal");
    world.fsync(&m);
    for block in 0..40 {
        world.pwrite(&m, block, &[block as u8 + 1; 5000], block as u64 * 8192);
    }
    let mut image = vec![0; IMAGE];
    world.pool.region.read(0, &mut image);
    (image, world.pool.superblock.uuid)
}

/// A keeper that comes back right after a start gets what the others had, records that are to be replayed among it.
#[test]
fn what_was_fetched_is_sent_on_whole() {
    let memory = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let (image, uuid) = image();
    let epoch = Epoch { counter: 3, writer: 4 };
    let base = Position { epoch: Epoch { counter: 2, writer: 9 }, number: 70 };
    let made = InMemory::make::<PoolError>(memory.path(), uuid, IMAGE as u64, |region| {
        region.copy_in(0, &image);
        Ok((epoch, base, 71))
    });
    let made = made.expect("made");
    assert_eq!(made.desk().turn(), (epoch, base, 71));
    let standing = made.standing().expect("it stands");
    assert_eq!(standing.last, 71);
    let (mut sent, mut at, mut bytes) = (vec![0; IMAGE], 0, Vec::new());
    while let Some(from) = standing.stretch(at, &mut bytes) {
        assert!(from >= at && !bytes.is_empty());
        sent[from as usize..][..bytes.len()].copy_from_slice(&bytes);
        at = from + bytes.len() as u64;
    }
    assert!(sent == image);
}
