//! Damage: of a block, of the index, of the zone.

use std::fs::File;

use seawall_cache::set::Policy;
use seawall_cache::shared::{Cache, FAILURES_MAX, Off, Offered, OpenError};
use seawall_media::Region;

use crate::common::{BOOT, identity, region, watched};
use crate::steps::{LAYOUT, create, enter, fill, look, memory, owner, write};

/// Flips a bit of every block in turn.
fn damage_blocks(memory: &File) {
    use std::os::unix::fs::FileExt;
    let blocks_at = LAYOUT.total_bytes().expect("sane") - LAYOUT.blocks() as usize * 4096;
    for nth in 0..LAYOUT.blocks() as usize {
        let at = (blocks_at + nth * 4096 + 77) as u64;
        let mut byte = [0];
        memory.read_exact_at(&mut byte, at).expect("a byte");
        memory.write_all_at(&[byte[0] ^ 4], at).expect("a byte");
    }
}

#[test]
fn a_damaged_block_is_dropped_and_repeated_damage_switches_all_off() {
    let memory = memory();
    let (cache, other) = (create(&memory, false), Cache::join(region(&memory)).expect("a cache"));
    let file = enter(&cache, 1).file;
    let numbers = 0..FAILURES_MAX as u32 - 1;
    numbers.clone().for_each(|number| _ = fill(&cache, file, number, 1));
    damage_blocks(&memory);
    assert_eq!((look(&cache, file, 0), cache.failures()), (None, 1));
    assert_eq!((look(&cache, file, 0), cache.failures()), (None, 1), "it was dropped");
    assert_eq!(fill(&cache, file, 0, 5), Offered::Admitted);
    assert_eq!(look(&cache, file, 0), Some(5));
    numbers.for_each(|number| _ = look(&cache, file, number));
    assert_eq!(cache.off(), None, "one less than it takes");
    fill(&cache, file, 20, 1);
    damage_blocks(&memory);
    look(&cache, file, 20);
    assert_eq!((cache.off(), other.off()), (Some(Off::Failures), Some(Off::Failures)));
    assert_eq!(look(&other, file, 0), None);
}

/// After a clean close no bit of the index may differ: a zone is served as it was, or not at all.
// Holds: internals/CACHE#after-a-restart
#[test]
fn a_flipped_bit_in_a_closed_index_is_found() {
    use std::os::unix::fs::FileExt;
    let memory = memory();
    let cache = create(&memory, true);
    let file = enter(&cache, 1).file;
    (0..4).for_each(|number| _ = fill(&cache, file, number, 1));
    cache.leave(file, &identity(1), i64::MAX);
    cache.close();
    let mut image = vec![0; LAYOUT.index_bytes()];
    memory.read_exact_at(&mut image, 0).expect("the zone");
    let header = (0..56).filter(|at| !(52..56).contains(at));
    for at in header.chain((2 * 4096 + 2 * 64 + 8 * 64..LAYOUT.index_bytes()).step_by(7)) {
        memory.write_all_at(&image, 0).expect("the zone");
        memory.write_all_at(&[image[at] ^ 1], at as u64).expect("a byte");
        assert!(Cache::recover(region(&memory), BOOT).is_err(), "byte {at}");
    }
    memory.write_all_at(&image, 0).expect("the zone");
    assert!(Cache::recover(region(&memory), BOOT).is_ok());
}

/// A zone that was not closed has no checksum over its index, and a bit of it may flip all the same: what was killed
/// stays dead, whichever bit it is.
// Holds: internals/CACHE#after-a-restart
#[test]
fn no_flipped_bit_brings_an_old_block_back() {
    use std::os::unix::fs::FileExt;
    let memory = memory();
    let cache = create(&memory, true);
    let file = enter(&cache, 1).file;
    (0..4).for_each(|number| _ = fill(&cache, file, number, 1));
    cache.change(owner(), file, || ());
    // Taken out because the file was to be left alone for a while, and written after that.
    let passed = 5..9;
    passed.clone().for_each(|number| _ = fill(&cache, file, number, 1));
    cache.set_policy(file, Policy::None);
    cache.arrange(&cache.arrangement());
    cache.set_policy(file, Policy::Default);
    passed.clone().for_each(|number| write(&cache, file, number));
    (0..4).for_each(|number| _ = fill(&cache, file, number, 2));
    write(&cache, file, 2);
    let number = cache.begin_sync(file);
    fill(&cache, file, 9, 2);
    cache.end_sync(file, number, true);
    cache.note(file, &identity(1), i64::MAX);
    drop(cache);
    let mut image = vec![0; LAYOUT.index_bytes()];
    memory.read_exact_at(&mut image, 0).expect("the zone");
    let mut warm = 0;
    for bit in (2 * 4096 + 8 * 64) * 8..LAYOUT.index_bytes() * 8 {
        memory.write_all_at(&image, 0).expect("the zone");
        memory.write_all_at(&[image[bit / 8] ^ 1 << (bit % 8)], (bit / 8) as u64).expect("a byte");
        let Ok((cache, _)) = Cache::recover(region(&memory), [2; 16]) else { continue };
        let cache = watched(cache);
        let entered = enter(&cache, 1);
        warm += u32::from(entered.is_warm);
        let found = [0, 1, 2, 3, 9].map(|number| look(&cache, entered.file, number));
        assert!(found.iter().all(|byte| matches!(byte, None | Some(2))), "bit {bit}: {found:?}");
        assert_eq!((found[2], found[4]), (None, None), "bit {bit}: written, and not synced");
        let found = passed.clone().find_map(|number| look(&cache, entered.file, number));
        assert_eq!(found, None, "bit {bit}: it was left alone, and then written");
    }
    assert!(warm > 1000, "it shows nothing: {warm}");
}

#[test]
fn a_zone_that_is_none_or_too_short_is_refused() {
    let memory = memory();
    assert_eq!(Cache::join(region(&memory)).err(), Some(OpenError::NotAZone));
    drop(create(&memory, false));
    let short = LAYOUT.total_bytes().expect("sane") as u64 - 4096;
    let region = Region::map(&memory, short, false).expect("a mapping");
    assert!(matches!(Cache::join(region), Err(OpenError::Geometry { .. })));
}
