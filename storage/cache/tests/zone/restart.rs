//! What is found again after a process ended, and after the machine stopped.

use seawall_cache::shared::{Cache, Entered, Identity, OpenError};

use crate::common::{BOOT, identity, region};
use crate::steps::{again, create, enter, fill, look, memory};

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
fn memory_that_does_not_survive_the_machine_is_not_believed_after_it() {
    let memory = memory();
    drop(create(&memory, false));
    assert_eq!(Cache::recover(region(&memory), [2; 16]).err(), Some(OpenError::Lost));
}
