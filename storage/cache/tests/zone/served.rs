//! What is served of a file, and what not any more.

use std::sync::atomic::Ordering::SeqCst;

use seawall_cache::access::Access;
use seawall_cache::key::Block;
use seawall_cache::shared::{Cache, CachedFile, Lookup, Offered, OperationOwner, is_sampled};

use crate::common::{BOOT, identity, region};
use crate::steps::{block, create, enter, fill, look, memory, owner, write};

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
