//! What fuzzing found: records whose checksums are right and whose content cannot be. Each is damage that is
//! named, before anything is written.

use crate::common::{World, roll_back};
use seawall_core::format::{Cell, Layout, RecordHeader};
use seawall_core::recover::{Damage, RecoverError};

/// A log of three writes, its last record changed by `change` and sealed again.
fn refused(change: impl FnOnce(&mut RecordHeader)) -> Vec<Damage> {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    for i in 0..3u8 {
        world.pwrite(&m, 0, &[i + 1; 64], u64::from(i) * 64);
    }
    let region = &world.pool.region;
    let segment = world.pool.layout().segment(0);
    let seq = region.u64(segment + 8).load(std::sync::atomic::Ordering::SeqCst);
    let last = segment + 64 + 2 * 128;
    let mut header = RecordHeader::read(region, last, seq).expect("the third record");
    change(&mut header);
    header.store(region, last);
    roll_back(&m, &[]);
    let (recovered, _dir, _memory) = world.recover();
    assert_eq!(m.file.metadata().expect("a size").len(), 0, "nothing was written");
    match recovered {
        Err(RecoverError::Damaged(all)) => all,
        other => panic!("{other:?}"),
    }
}

/// It panicked, after the first records had been written.
#[test]
fn regression_a_record_beyond_the_end_of_files_is_damage() {
    for (offset, length) in [(u64::MAX - 10, 100), (i64::MAX as u64, 64), (u64::MAX, 64)] {
        let all = refused(|header| (header.offset, header.length) = (offset, length));
        assert!(matches!(all[..], [Damage::Range { slot: 0, .. }]), "{all:?}");
    }
}

/// Its parts were applied to the file of the first one, or it was dropped without a word.
#[test]
fn regression_parts_that_do_not_belong_together_are_damage() {
    let all = refused(|header| header.lsn -= 1);
    assert!(matches!(all[..], [Damage::Parts { .. }]), "{all:?}");
    let all = refused(|header| (header.lsn, header.part, header.slot) = (header.lsn - 1, 1, 1));
    assert!(matches!(all[..], [Damage::Parts { .. }]), "{all:?}");
}

/// The next LSN would have been 0, and every later record retired before it was written.
#[test]
fn regression_a_log_at_the_end_of_its_numbers_is_damage() {
    let world = World::new(16 << 20);
    Cell::at(Layout::retired()).format(&world.pool.region, u64::MAX);
    let (recovered, _dir, _memory) = world.recover();
    let Err(RecoverError::Damaged(all)) = recovered else { panic!("{recovered:?}") };
    assert!(matches!(all[..], [Damage::Sequence { lsn: u64::MAX }]), "{all:?}");
}
