//! One process and a zone: what is served, what is not, and what is found again.

mod common;

use std::fs::File;
use std::sync::atomic::Ordering::SeqCst;

use common::{BOOT, identity, region, watched};
use seawall_cache::access::Access;
use seawall_cache::key::Block;
use seawall_cache::set::Policy;
use seawall_cache::shared::{
    Cache, CachedFile, Entered, FAILURES_MAX, Identity, Layout, Lookup, Off, Offered, OpenError,
    OperationOwner, Version, is_sampled,
};
use seawall_media::Region;

const LAYOUT: Layout = Layout { block_bytes: 4096, sets: 4, files: 2, operations: 8, staged: 0 };

fn owner() -> OperationOwner {
    OperationOwner::new(1, 1)
}

fn memory() -> File {
    common::memory(LAYOUT)
}

fn create(memory: &File, is_durable: bool) -> Cache {
    common::create(memory, LAYOUT, is_durable)
}

fn enter(cache: &Cache, inode: u64) -> Entered {
    cache.enter(&identity(inode)).expect("room for a file")
}

fn block(byte: u8) -> Vec<u8> {
    vec![byte; 4096]
}

/// What the cache has of a block.
fn look(cache: &Cache, file: CachedFile, number: u32) -> Option<u8> {
    let mut buffer = block(0);
    let hit = cache.look_up(file, number, &mut buffer) == Lookup::Hit;
    hit.then(|| {
        assert!(buffer.iter().all(|byte| *byte == buffer[0]));
        buffer[0]
    })
}

fn fill(cache: &Cache, file: CachedFile, number: u32, byte: u8) -> Offered {
    let Lookup::Miss(token) = cache.look_up(file, number, &mut block(0)) else { panic!("it is there") };
    token.map_or(Offered::Stale, |token| cache.offer(owner(), &token, &block(byte)))
}

fn write(cache: &Cache, file: CachedFile, number: u32) {
    let writing = cache.begin_write(owner(), file, number..number + 1);
    cache.end_write(writing);
}

#[test]
fn what_was_filled_is_served_until_it_is_written() {
    let memory = memory();
    let cache = create(&memory, false);
    let file = enter(&cache, 1).file;
    assert_eq!(look(&cache, file, 3), None);
    assert_eq!(fill(&cache, file, 3, 42), Offered::Admitted);
    assert_eq!(look(&cache, file, 3), Some(42));
    let writing = cache.begin_write(owner(), file, 2..5);
    assert_eq!(look(&cache, file, 3), None);
    assert_eq!(cache.look_up(file, 3, &mut block(0)), Lookup::Miss(None), "a write is under way");
    cache.end_write(writing);
    assert_eq!(look(&cache, file, 3), None);
    assert_eq!(fill(&cache, file, 3, 43), Offered::Admitted);
    assert_eq!(look(&cache, file, 3), Some(43));
}

#[test]
fn a_token_of_before_a_write_is_stale_also_for_a_block_that_was_not_there() {
    let memory = memory();
    let cache = create(&memory, false);
    let file = enter(&cache, 1).file;
    let Lookup::Miss(Some(token)) = cache.look_up(file, 3, &mut block(0)) else { panic!("no token") };
    write(&cache, file, 3);
    assert_eq!(cache.offer(owner(), &token, &block(1)), Offered::Stale);
    assert_eq!(look(&cache, file, 3), None);
}

#[test]
fn a_change_kills_all_of_its_file_and_nothing_else() {
    let memory = memory();
    let cache = create(&memory, false);
    let (a, b) = (enter(&cache, 1).file, enter(&cache, 2).file);
    for number in 0..4 {
        fill(&cache, a, number, 1);
        fill(&cache, b, number, 2);
    }
    let Lookup::Miss(Some(token)) = cache.look_up(a, 9, &mut block(0)) else { panic!("no token") };
    cache.change(owner(), a, || assert_eq!(cache.look_up(a, 0, &mut block(0)), Lookup::Miss(None)));
    cache.offer(owner(), &token, &block(1));
    assert!([0, 1, 2, 3, 9].iter().all(|number| look(&cache, a, *number).is_none()));
    assert!((0..4).all(|number| look(&cache, b, number) == Some(2)));
}

#[test]
fn a_reference_that_was_kept_for_too_long_shows_nothing_of_the_next_file() {
    let memory = memory();
    let cache = create(&memory, false);
    let old = enter(&cache, 1).file;
    fill(&cache, old, 0, 1);
    cache.forget(old);
    let new = enter(&cache, 2).file;
    assert_eq!(new.slot, old.slot);
    assert_eq!(look(&cache, new, 0), None);
    fill(&cache, new, 0, 2);
    assert_eq!((look(&cache, old, 0), look(&cache, new, 0)), (None, Some(2)));
    let number = cache.begin_sync(old);
    cache.end_sync(old, number, false);
    assert!(cache.is_served(new));
}

#[test]
fn a_file_nobody_uses_makes_room_for_another() {
    let memory = memory();
    let cache = create(&memory, false);
    let (a, _) = (enter(&cache, 1).file, enter(&cache, 2));
    assert_eq!(cache.enter(&identity(3)), None);
    cache.leave(a, &identity(1), i64::MAX);
    let third = enter(&cache, 3);
    assert_eq!((third.file.slot, third.is_warm), (a.slot, false));
    assert!(!cache.is_served(a));
}

#[test]
fn a_failed_sync_ends_the_service_of_its_file() {
    let memory = memory();
    let cache = create(&memory, false);
    let file = enter(&cache, 1).file;
    fill(&cache, file, 0, 1);
    let number = cache.begin_sync(file);
    cache.end_sync(file, number, false);
    assert!(!cache.is_served(file));
    assert_eq!(look(&cache, file, 0), None);
    cache.leave(file, &identity(1), i64::MAX);
    assert!(!enter(&cache, 1).is_warm, "nobody knows what the disk holds");
    assert!(cache.is_served(file));
}

/// Leaves a change half done, as a process that is killed in it does.
fn die_changing(cache: &Cache, dead: OperationOwner, file: CachedFile) {
    let change = || cache.change(dead, file, || std::panic::resume_unwind(Box::new(())));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(change)).is_err());
}

#[test]
fn marks_of_the_dead_are_wiped_and_those_of_the_living_are_not() {
    let memory = memory();
    let cache = create(&memory, false);
    let file = enter(&cache, 1).file;
    let (dead, closed) = (OperationOwner::new(2, 1), Lookup::Miss(None));
    let reap = || cache.reap(|owner| owner == dead).operations;

    let _killed = cache.begin_write(dead, file, 3..4);
    let living = cache.begin_write(owner(), file, 3..4);
    assert_eq!((reap(), cache.look_up(file, 3, &mut block(0))), (0, closed));
    cache.end_write(living);
    assert_eq!(reap(), 1);
    assert_eq!(fill(&cache, file, 3, 1), Offered::Admitted);

    die_changing(&cache, dead, file);
    let closed = Lookup::Miss(None);
    cache.change(owner(), file, || {
        assert_eq!((reap(), cache.look_up(file, 3, &mut block(0))), (0, closed));
    });
    assert!(!cache.is_served(file));
    assert_eq!((reap(), cache.under_way()), (1, 0));
    assert_eq!(fill(&cache, file, 3, 2), Offered::Admitted);
}

#[test]
fn what_is_hit_read_from_the_disk_and_written_is_sampled() {
    let memory = memory();
    let cache = create(&memory, false);
    let file = enter(&cache, 1).file;
    let block_of = |number| Block { file: file.slot, number };
    let number = (0..).find(|number| is_sampled(block_of(*number))).expect("one in 64");
    let sampled = block_of(number);
    fill(&cache, file, number, 1);
    look(&cache, file, number);
    write(&cache, file, number);
    look(&cache, file, number);
    let expected = vec![Access::Read(sampled), Access::Read(sampled), Access::Write(sampled)];
    assert_eq!(cache.samples(0), (expected, 3), "a miss alone says nothing: the page cache may have it");
    (0..2000).for_each(|_| write(&cache, file, number));
    let (late, next) = cache.samples(3);
    assert_eq!((late.len(), next), (504, 2003));
    assert_eq!(cache.samples(next), (Vec::new(), next));
}

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

/// Leaves the cache of `memory` as a process that ends leaves it, and finds it again.
fn again(memory: &File, boot: [u8; 16]) -> Cache {
    let (cache, _) = Cache::recover(region(memory), boot).expect("the zone");
    watched(cache)
}

#[test]
fn an_unchanged_file_is_warm_after_a_restart_and_a_changed_one_is_not() {
    let memory = memory();
    let cache = create(&memory, false);
    let file = enter(&cache, 1).file;
    fill(&cache, file, 0, 1);
    cache.leave(file, &identity(1), i64::MAX);
    drop(cache);

    let cache = again(&memory, BOOT);
    assert_eq!(look(&cache, file, 0), None, "nobody has verified the file yet");
    assert_eq!(enter(&cache, 1), Entered { file, is_warm: true });
    assert_eq!(look(&cache, file, 0), Some(1));
    cache.leave(file, &identity(1), i64::MAX);
    drop(cache);

    let cache = again(&memory, BOOT);
    let changed = Identity { mtime_ns: 7, ctime_ns: 7, ..identity(1) };
    assert_eq!(cache.enter(&changed), Some(Entered { file, is_warm: false }));
    assert_eq!(look(&cache, file, 0), None);
}

#[test]
fn after_the_machine_stopped_only_what_was_synced_is_there() {
    let memory = memory();
    let cache = create(&memory, true);
    let file = enter(&cache, 1).file;
    cache.note(file, &identity(1), i64::MAX);
    fill(&cache, file, 0, 1);
    let number = cache.begin_sync(file);
    fill(&cache, file, 1, 1);
    cache.end_sync(file, number, true);
    drop(cache);

    let cache = again(&memory, [2; 16]);
    assert!(enter(&cache, 1).is_warm);
    assert_eq!((look(&cache, file, 0), look(&cache, file, 1)), (Some(1), None));
    // A process that ends is no such stop.
    fill(&cache, file, 1, 2);
    cache.note(file, &identity(1), i64::MAX);
    drop(cache);
    let cache = again(&memory, [2; 16]);
    assert!(enter(&cache, 1).is_warm);
    assert_eq!(look(&cache, file, 1), Some(2));
    // Nor is one that was announced.
    cache.leave(file, &identity(1), i64::MAX);
    cache.close();
    let cache = again(&memory, [3; 16]);
    assert!(enter(&cache, 1).is_warm);
    assert_eq!(look(&cache, file, 1), Some(2));
}

#[test]
fn memory_that_does_not_survive_the_machine_is_not_believed_after_it() {
    let memory = memory();
    drop(create(&memory, false));
    assert_eq!(Cache::recover(region(&memory), [2; 16]).err(), Some(OpenError::Lost));
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

#[test]
fn without_room_to_note_a_write_its_file_is_served_no_more() {
    let memory = memory();
    let cache = create(&memory, false);
    let (a, b) = (enter(&cache, 1).file, enter(&cache, 2).file);
    fill(&cache, b, 0, 1);
    let writes: Vec<_> = (0..8).map(|number| cache.begin_write(owner(), a, number..number + 1)).collect();
    let unnoted = cache.begin_write(owner(), b, 7..8);
    assert!(cache.is_served(a) && !cache.is_served(b));
    assert_eq!(look(&cache, b, 0), None);
    cache.end_write(unnoted);
    writes.into_iter().for_each(|writing| cache.end_write(writing));
    assert!(!cache.is_served(b));
    assert_eq!(cache.under_way(), 0);
}

#[test]
fn a_file_is_not_served_while_somebody_writes_it_unannounced() {
    const DEV: u64 = 8;
    let memory = memory();
    let cache = create(&memory, false);
    let (cell, before) = (cache.cell(DEV, 1), Version::default());
    cache.begin_unannounced(cell, before).expect("nobody entered it");
    let preparing = cache.prepare(&identity(1), DEV).expect("room");
    assert!(!cache.is_quiet(&preparing));
    let now = cache.begin_unannounced(cell, before).expect_err("somebody enters it");
    assert_eq!(cache.find(DEV, 1), Some(preparing.file()));
    cache.end_unannounced(cell);
    assert!(cache.is_quiet(&preparing) && !preparing.is_served());
    assert!(cache.serve(&preparing, &identity(1)).file == preparing.file());
    assert!(cache.prepare(&identity(1), DEV).expect("it is there").is_served());

    // Another file of the same cell: it is looked for once, and then known not to be there.
    assert_eq!(cache.find(DEV, 2), None);
    cache.begin_unannounced(cell, now).expect("nobody entered one since");
    cache.end_unannounced(cell);
    assert!(cache.pin(cell));
    drop(cache);
    let cache = again(&memory, BOOT);
    assert_eq!(cache.find(DEV, 1), None, "numbers of devices are not to be believed any more");
    let preparing = cache.prepare(&identity(1), DEV).expect("room");
    assert!(cache.is_quiet(&preparing), "whoever pinned it is gone");
}

/// Somebody maps it writably while the daemon enters it: the daemon does not know that when it says that it is served.
#[test]
fn who_distrusts_a_file_while_it_is_entered_is_believed() {
    let memory = memory();
    let cache = create(&memory, false);
    for is_known in [false, true] {
        let preparing = cache.prepare(&identity(1), 8).expect("room");
        let found = cache.find(8, 1).expect("whoever writes it finds it");
        cache.distrust(found);
        let file = cache.serve(&preparing, &identity(1)).file;
        assert!(!cache.is_served(file), "known: {is_known}");
        assert_eq!(cache.look_up(file, 0, &mut block(0)), Lookup::Miss(None));
        cache.leave(file, &identity(1), i64::MAX);
    }
}

#[test]
fn an_inode_that_is_used_again_keeps_its_slot_and_nothing_else() {
    const DEV: u64 = 8;
    let memory = memory();
    let cache = create(&memory, false);
    let first = cache.prepare(&identity(1), DEV).expect("room");
    let first = cache.serve(&first, &identity(1)).file;
    fill(&cache, first, 0, 1);
    assert_eq!(look(&cache, first, 0), Some(1));
    let another = Identity { generation: 2, ..identity(1) };
    let second = cache.prepare(&another, DEV).expect("room");
    assert_eq!((second.file(), second.is_served()), (first, false));
    assert!(!cache.serve(&second, &another).is_warm);
    assert_eq!(look(&cache, first, 0), None);
}

#[test]
fn after_the_machine_stopped_a_file_that_was_not_served_is_cold() {
    let memory = memory();
    let cache = create(&memory, true);
    let file = enter(&cache, 1).file;
    fill(&cache, file, 0, 1);
    let number = cache.begin_sync(file);
    cache.end_sync(file, number, true);
    cache.leave(file, &identity(1), i64::MAX);
    drop(cache);
    // Somebody may have written it, durably, and its times were not made durable.
    let cache = again(&memory, [2; 16]);
    assert!(!enter(&cache, 1).is_warm);
}

#[test]
fn nothing_is_served_or_filled_while_nobody_watches() {
    let memory = memory();
    let cache = create(&memory, false);
    let file = enter(&cache, 1).file;
    fill(&cache, file, 0, 1);
    // As the kernel leaves the word of a thread that died: FUTEX_OWNER_DIED.
    cache.watcher().store(0x4000_0000, SeqCst);
    assert_eq!(cache.look_up(file, 0, &mut block(0)), Lookup::Miss(None));
    assert!(!cache.is_served(file));
    cache.watcher().store(7, SeqCst);
    assert_eq!(look(&cache, file, 0), Some(1));
    drop(cache);
    let (cache, _) = Cache::recover(region(&memory), BOOT).expect("the zone");
    assert_eq!(cache.watcher().load(SeqCst), 0, "who watched is not there any more");
}

#[test]
fn a_file_that_is_looked_at_is_served_again_with_its_blocks_or_without() {
    let memory = memory();
    let cache = create(&memory, false);
    let file = enter(&cache, 1).file;
    fill(&cache, file, 0, 1);
    let Lookup::Miss(Some(token)) = cache.look_up(file, 9, &mut block(0)) else { panic!("no token") };
    cache.suspend(file);
    assert_eq!(cache.look_up(file, 0, &mut block(0)), Lookup::Miss(None));
    cache.resume(file, true);
    assert_eq!(look(&cache, file, 0), Some(1));
    cache.suspend(file);
    cache.resume(file, false);
    cache.offer(owner(), &token, &block(1));
    assert_eq!((look(&cache, file, 0), look(&cache, file, 9)), (None, None));
    // What a front does not trust the daemon does not trust for it.
    cache.suspend(file);
    cache.distrust(file);
    cache.resume(file, true);
    assert!(!cache.is_served(file));
}

#[test]
fn a_file_that_leaves_while_it_is_looked_at_is_cold() {
    let memory = memory();
    let cache = create(&memory, false);
    let file = enter(&cache, 1).file;
    fill(&cache, file, 0, 1);
    cache.suspend(file);
    cache.leave(file, &identity(1), i64::MAX);
    enter(&cache, 1);
    assert!(cache.is_served(file));
    assert_eq!(look(&cache, file, 0), None);
}

#[test]
fn the_files_that_are_entered_are_listed_with_what_they_are_for() {
    let memory = memory();
    let cache = create(&memory, false);
    let (a, b) = (enter(&cache, 1).file, enter(&cache, 2).file);
    fill(&cache, a, 0, 1);
    cache.set_class(b, 3);
    cache.distrust(a);
    cache.suspend(b);
    let listed = cache.tenants().map(|tenant| (tenant.file, tenant.is_distrusted, tenant.is_suspended));
    assert_eq!(listed.collect::<Vec<_>>(), [(a, true, false), (b, false, true)]);
    assert_eq!((cache.class(a), cache.class(b), cache.filled(), cache.admitted()), (0, 3, 1, 1));
    cache.forget(a);
    assert_eq!(cache.tenants().count(), 1);
}
