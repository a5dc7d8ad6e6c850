//! Which files are entered, and what becomes of those that are looked at, changed, or given up meanwhile.

use seawall_cache::shared::{Identity, Lookup, Version};

use crate::common::{BOOT, identity};
use crate::steps::{again, block, create, enter, fill, look, memory, owner};

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
