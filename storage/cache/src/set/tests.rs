use super::*;

#[test]
fn heats_warm_one_by_one_and_cool_together() {
    let mut heat = Heat::default();
    for (way, times) in [(0, 1), (7, 2), (15, 9)] {
        (0..times).for_each(|_| heat = heat.warmed(way));
    }
    let all = |heat: Heat| [0, 7, 15].map(|way| heat.of(way));
    assert_eq!(all(heat), [1, 2, 3]);
    assert_eq!(all(heat.cooled(u16::MAX)), [0, 1, 2]);
    assert_eq!(all((0..4).fold(heat, |heat, _| heat.cooled(u16::MAX))), [0, 0, 0]);
    assert_eq!(heat.cold(), !(1 << 0 | 1 << 7 | 1 << 15));
    assert_eq!(all(heat.cooled(1 << 7)), [1, 1, 3], "the others stay as warm as they were");
}

fn one(fingerprint: u8, policy: Policy) -> Newcomer {
    Newcomer { fingerprint, policy, is_early: false }
}

/// Any other file's block.
fn other(fingerprint: u8) -> Newcomer {
    one(fingerprint, Policy::Default)
}

/// A full set, and kept blocks that were each missed once; its heats, and what it remembers.
fn with_kept(blocks: u8) -> (Heat, Memory) {
    let (mut heat, mut memory) = (Heat(u32::MAX), Memory::default());
    for fingerprint in 101..=100 + blocks {
        let place = admit(one(fingerprint, Policy::Keep), heat, &mut memory, 0, 0);
        heat = place.map_or(heat, |place| place.heat);
    }
    (heat, memory)
}

/// How many of so many blocks, each missed `times` times in a row, a set of warm places lets in.
fn let_in(fingerprints: u8, times: usize, heat: Heat) -> usize {
    let (mut heat, mut memory, mut entered) = (heat, Memory::default(), 0);
    for fingerprint in 1..=fingerprints {
        for _ in 0..times {
            let Some(place) = admit(other(fingerprint), heat, &mut memory, 0, 0) else { continue };
            (heat, entered) = (place.heat, entered + 1);
        }
    }
    entered
}

#[test]
fn a_scan_leaves_nothing_but_ghosts() {
    assert_eq!(let_in(200, 1, Heat::default()), 0);
    assert_eq!(let_in(10, 2, Heat::default()), 10);
}

#[test]
fn the_equally_wanted_do_not_drive_each_other_out() {
    let warm = Heat(u32::MAX);
    assert_eq!(let_in(PATIENCE - 1, 2, warm), 0);
    assert_eq!(let_in(PATIENCE, 2, warm), 1, "all are cold now, but for the newcomer");
}

#[test]
fn who_comes_back_gets_a_cold_place_and_room_is_used_first() {
    let mut memory = Memory::default();
    let heat = Heat(u32::MAX).with(6, 0);
    assert_eq!(admit(other(9), heat, &mut memory, 0, 0), None);
    assert_eq!(admit(other(9), heat, &mut memory, 0, 0).map(|place| place.way), Some(6));
    assert_eq!(admit(other(8), heat, &mut memory, 1 << 5, 0).map(|place| place.way), Some(5));
}

#[test]
fn busy_places_are_left_alone() {
    let mut memory = Memory::default();
    for fingerprint in (1..100).flat_map(|n| [n, n]) {
        let place = admit(other(fingerprint), Heat::default(), &mut memory, 0, 0xfffe);
        assert!(place.is_none_or(|place| place.way == 0));
    }
    assert_eq!(admit(other(200), Heat::default(), &mut memory, u16::MAX, u16::MAX), None);
}

#[test]
fn what_is_kept_enters_at_once_and_up_to_its_share() {
    for blocks in 1..=KEPT_MAX as u8 {
        let (_, memory) = with_kept(blocks);
        assert_eq!(memory.kept.count_ones(), u32::from(blocks));
        assert_eq!(memory.ghosts, [0; WAYS], "all entered");
    }
    let (_, memory) = with_kept(100);
    assert_eq!(memory.kept.count_ones(), KEPT_MAX);
    assert!(memory.ghosts.contains(&200), "who does not fit competes as everybody does");
}

#[test]
fn what_is_kept_takes_the_coldest_place() {
    let mut memory = Memory::default();
    let heat = Heat(u32::MAX).with(11, 1).with(4, 2);
    let place = admit(one(1, Policy::Keep), heat, &mut memory, 0, 0).expect("a place");
    assert_eq!((place.way, place.heat.of(4), place.heat.of(0)), (11, 2, 3), "nobody else cools");
    assert_eq!(memory.kept, 1 << 11);
}

#[test]
fn others_neither_take_nor_cool_what_is_kept() {
    let (mut heat, mut memory) = with_kept(8);
    (0..WAYS).filter(|way| memory.kept >> way & 1 == 1).for_each(|way| heat = heat.with(way, 2));
    let kept = memory.kept;
    let mut entered = 0;
    for fingerprint in (1..=100).flat_map(|n| [n, n]) {
        let Some(place) = admit(other(fingerprint), heat, &mut memory, 0, 0) else { continue };
        assert_eq!(kept >> place.way & 1, 0, "place {} was kept", place.way);
        (heat, entered) = (place.heat, entered + 1);
    }
    assert!(entered > 10, "the rest of the set is theirs: {entered}");
    assert!((0..WAYS).all(|way| kept >> way & 1 == 0 || heat.of(way) == 2), "{heat:?}");
    assert_eq!(memory.kept, kept);
}

#[test]
fn what_is_kept_and_does_not_fit_competes_also_with_its_kind() {
    let (heat, mut memory) = with_kept(KEPT_MAX as u8);
    let kept = memory.kept;
    assert_eq!(admit(one(1, Policy::Keep), heat, &mut memory, 0, 0), None, "not at once");
    let place = admit(one(1, Policy::Keep), heat, &mut memory, 0, 0).expect("a cold place");
    assert_eq!((kept >> place.way & 1, memory.kept), (1, kept), "all others are warm");
    let (warm, mut full) = (Heat(u32::MAX), Memory { kept: !0xf, ..Memory::default() });
    let in_a_free_place = admit(one(2, Policy::Keep), warm, &mut full, 1, 0).expect("room");
    assert_eq!((in_a_free_place.way, full.kept), (0, !0xf), "it stays everybody's");
}

#[test]
fn a_kept_place_that_lost_its_block_is_nobodys() {
    let (heat, mut memory) = with_kept(KEPT_MAX as u8);
    let lost = 1 << memory.kept.trailing_zeros();
    let place = admit(other(1), heat, &mut memory, lost, 0).expect("room");
    assert_eq!((1 << place.way, memory.kept & lost), (lost, 0));
    // One that is being filled is its filler's.
    let (heat, mut memory) = with_kept(KEPT_MAX as u8);
    let filling = memory.kept;
    admit(other(1), heat, &mut memory, filling, filling);
    assert_eq!(memory.kept, filling);
}

#[test]
fn who_comes_early_takes_room_and_leaves_no_trace() {
    let early = |policy| Newcomer { is_early: true, ..one(7, policy) };
    let mut memory = Memory::default();
    assert_eq!(admit(early(Policy::Default), Heat::default(), &mut memory, 0, 0), None);
    assert_eq!(memory, Memory::default());
    // Nor when somebody missed it before: that one who misses it again is let in.
    assert_eq!(admit(other(7), Heat::default(), &mut memory, 0, 0), None);
    assert_eq!(admit(early(Policy::Default), Heat::default(), &mut memory, 0, 0), None);
    assert!(admit(other(7), Heat::default(), &mut memory, 0, 0).is_some());
    assert!(admit(early(Policy::Default), Heat::default(), &mut memory, 1, 0).is_some());
    assert!(admit(early(Policy::Keep), Heat(u32::MAX), &mut memory, 0, 0).is_some());
}
