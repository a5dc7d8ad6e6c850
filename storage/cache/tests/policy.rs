//! Files that are to be kept, and such as are to be left alone: what that does to the blocks of one shared zone.

mod common;

use std::fs::File;

use common::{BOOT, identity, region, watched};
use seawall_cache::set::{KEPT_MAX, Policy, WAYS};
use seawall_cache::shared::{Cache, CachedFile, Holding, Layout, Lookup, Offered, OperationOwner};

const LAYOUT: Layout = Layout { block_bytes: 4096, sets: 8, files: 4, operations: 8, staged: 0 };
const PLACES: u32 = 8 * WAYS as u32;

fn memory() -> File {
    common::memory(LAYOUT)
}

fn create(memory: &File) -> Cache {
    common::create(memory, LAYOUT, false)
}

fn enter(cache: &Cache, inode: u64, policy: Policy) -> CachedFile {
    let file = cache.enter(&identity(inode)).expect("room for a file").file;
    cache.set_policy(file, policy);
    file
}

fn content(number: u32) -> Vec<u8> {
    vec![number as u8; 4096]
}

fn is_there(cache: &Cache, file: CachedFile, number: u32) -> bool {
    let mut buffer = content(number + 1);
    let is_hit = cache.look_up(file, number, &mut buffer) == Lookup::Hit;
    assert!(!is_hit || buffer == content(number));
    is_hit
}

/// Reads a block; what became of its offer if it was not there.
fn read(cache: &Cache, file: CachedFile, number: u32) -> Option<Offered> {
    match cache.look_up(file, number, &mut content(number)) {
        Lookup::Hit => None,
        Lookup::Miss(token) => {
            let token = token.expect("a file that is served");
            Some(cache.offer(OperationOwner::new(1, 1), &token, &content(number)))
        }
    }
}

fn count(cache: &Cache, file: CachedFile, blocks: u32) -> usize {
    (0..blocks).filter(|number| is_there(cache, file, *number)).count()
}

/// Every block of so many, often.
fn flood(cache: &Cache, file: CachedFile, blocks: u32) {
    (0..20).flat_map(|_| 0..blocks).for_each(|number| _ = read(cache, file, number));
}

fn held(cache: &Cache, file: CachedFile) -> Holding {
    cache.holdings().get(&file.slot).copied().unwrap_or_default()
}

#[test]
fn what_is_kept_enters_at_once_and_stays() {
    let memory = memory();
    let cache = create(&memory);
    let (kept, other) = (enter(&cache, 1, Policy::Keep), enter(&cache, 2, Policy::Default));
    flood(&cache, other, PLACES * 2);
    let wanted = PLACES / 4;
    assert!((0..wanted).all(|number| read(&cache, kept, number) == Some(Offered::Admitted)));
    flood(&cache, other, PLACES * 2);
    assert_eq!(count(&cache, kept, wanted), wanted as usize);
    assert_eq!(held(&cache, kept), Holding { blocks: wanted.into(), kept: wanted.into() });
    assert!(count(&cache, other, PLACES * 2) > PLACES as usize / 2, "the rest is the others'");
}

// Holds: internals/CACHE#which-blocks-it-keeps
#[test]
fn what_is_kept_starves_nobody() {
    let memory = memory();
    let cache = create(&memory);
    let (kept, other) = (enter(&cache, 1, Policy::Keep), enter(&cache, 2, Policy::Default));
    flood(&cache, kept, PLACES * 4);
    assert_eq!(held(&cache, kept).kept, u64::from(8 * KEPT_MAX));
    flood(&cache, other, PLACES / 8);
    assert!(count(&cache, other, PLACES / 8) > PLACES as usize / 16, "they find places");
}

/// Three quarters of each set's places, rounded down: that many are promised, kept, and left alone by others.
#[test]
fn what_is_kept_has_its_share_of_every_size() {
    let memory = memory();
    let cache = create(&memory);
    let (kept, other) = (enter(&cache, 1, Policy::Keep), enter(&cache, 2, Policy::Default));
    flood(&cache, kept, PLACES * 4);
    for ways in [16, 5, 11, 3, 1, 2, 16] {
        cache.resize(ways);
        assert!(cache.vacate());
        cache.arrange(&cache.arrangement());
        let most = u64::from(8 * (ways * 3 / 4));
        assert_eq!(cache.kept_max(), most, "promised, of {ways} places");
        assert!(held(&cache, kept).kept <= most, "{ways} places: {:?}", held(&cache, kept));
        flood(&cache, kept, PLACES * 4);
        assert_eq!(held(&cache, kept).kept, most, "{ways} places");
        flood(&cache, other, PLACES * 2);
        let held = held(&cache, kept);
        assert_eq!(held.kept, most, "{ways} places: none was driven out");
        assert!(held.blocks < u64::from(8 * ways), "{ways} places: others have one");
    }
}

#[test]
fn a_policy_is_applied_to_what_is_there() {
    let memory = memory();
    let cache = create(&memory);
    let file = enter(&cache, 1, Policy::Default);
    (0..PLACES / 4).for_each(|number| assert_eq!(read(&cache, file, number), Some(Offered::Admitted)));
    let arrange = |policy| {
        cache.set_policy(file, policy);
        cache.arrange(&cache.arrangement());
        held(&cache, file)
    };
    let all = u64::from(PLACES / 4);
    assert_eq!(arrange(Policy::Keep), Holding { blocks: all, kept: all });
    assert_eq!(arrange(Policy::Default), Holding { blocks: all, kept: 0 });
    assert_eq!(arrange(Policy::None), Holding::default());
    assert_eq!(cache.look_up(file, 0, &mut content(0)), Lookup::Miss(None), "nothing is offered either");
    assert!(!cache.is_served(file));
    assert_eq!(arrange(Policy::Default), Holding::default());
    assert_eq!(read(&cache, file, 0), Some(Offered::Admitted));
}

/// A file that was changed as a whole has lost its blocks, and their places are everybody's again.
#[test]
fn the_places_of_blocks_that_died_are_not_kept() {
    let memory = memory();
    let cache = create(&memory);
    let (kept, other) = (enter(&cache, 1, Policy::Keep), enter(&cache, 2, Policy::Default));
    flood(&cache, kept, PLACES * 4);
    let before = cache.arrangement();
    cache.change(OperationOwner::new(1, 1), kept, || ());
    let now = cache.arrangement();
    assert_ne!(before, now, "a new incarnation has a number of its own");
    cache.arrange(&now);
    let blocks = PLACES * 3 / 4;
    flood(&cache, other, blocks);
    assert!(
        count(&cache, other, blocks) > PLACES as usize / 2,
        "{} found places",
        count(&cache, other, blocks)
    );
}

/// A slot's next file does not inherit what its former one was.
#[test]
fn a_policy_ends_with_its_file() {
    let memory = memory();
    let cache = create(&memory);
    for inode in 1..=4 {
        let file = enter(&cache, inode, if inode == 4 { Policy::None } else { Policy::Keep });
        cache.leave(file, &identity(inode), i64::MAX);
    }
    let file = cache.enter(&identity(5)).expect("the oldest goes").file;
    assert_eq!(cache.policy(file.slot), Policy::Default);
    assert!(cache.is_served(file));
}

#[test]
fn what_is_kept_is_kept_after_a_restart() {
    let memory = memory();
    let cache = create(&memory);
    let kept = enter(&cache, 1, Policy::Keep);
    flood(&cache, enter(&cache, 2, Policy::Default), PLACES * 2);
    (0..PLACES / 4).for_each(|number| _ = read(&cache, kept, number));
    let passed = enter(&cache, 3, Policy::None);
    for (inode, file) in [(1, kept), (3, passed)] {
        cache.leave(file, &identity(inode), i64::MAX);
    }
    cache.close();
    drop(cache);
    let (cache, _) = Cache::recover(region(&memory), BOOT).expect("the zone");
    let cache = watched(cache);
    let entered = cache.enter(&identity(1)).expect("known");
    assert!(entered.is_warm);
    assert_eq!(held(&cache, entered.file).kept, u64::from(PLACES / 4));
    let passed = cache.enter(&identity(3)).expect("known").file;
    assert!(cache.is_served(passed), "whoever enters it says what its policy is now");
}

/// Blocks that nobody missed take what is free; only those that are to be kept drive others out.
#[test]
fn what_comes_early_takes_room_and_no_more() {
    let memory = memory();
    let cache = create(&memory);
    let (file, other) = (enter(&cache, 1, Policy::Default), enter(&cache, 2, Policy::Default));
    let early = |file, number| match cache.look_up(file, number, &mut content(number)) {
        Lookup::Miss(Some(token)) => cache.offer_early(OperationOwner::new(1, 1), &token, &content(number)),
        other => panic!("{other:?}"),
    };
    let admitted = (0..PLACES * 4).filter(|number| early(file, *number) == Offered::Admitted).count();
    assert_eq!(admitted, PLACES as usize);
    assert!((0..PLACES).all(|number| early(other, number) == Offered::Passed));
    assert!((0..PLACES).all(|number| early(other, number) == Offered::Passed), "also the second time");
    cache.set_policy(other, Policy::Keep);
    assert!((0..PLACES / 4).all(|number| early(other, number) == Offered::Admitted));
}
