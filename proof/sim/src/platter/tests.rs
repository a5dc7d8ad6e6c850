use super::*;

const SECTOR: usize = 512;

fn disk(lazy: bool) -> Platter {
    Platter::holding(vec![1; 4 * SECTOR], SECTOR, lazy)
}

fn content(sectors: [u8; 4]) -> Vec<u8> {
    sectors.iter().flat_map(|value| [*value; SECTOR]).collect()
}

#[test]
fn a_request_is_there_as_a_whole_or_not_at_all() {
    let mut disk = disk(false);
    disk.ask(0, vec![2; 2 * SECTOR]);
    let fits = |disk: &Platter, sectors| disk.check(&content(sectors)).is_ok();
    assert!(fits(&disk, [1, 1, 1, 1]) && fits(&disk, [2, 2, 1, 1]));
    assert!(!fits(&disk, [2, 1, 1, 1]) && !fits(&disk, [3, 3, 1, 1]) && !fits(&disk, [2, 2, 2, 1]));
    disk.publish(0, false);
    assert!(fits(&disk, [2, 1, 1, 1]), "it went around the log");
}

#[test]
fn what_was_answered_before_a_flush_is_there_and_the_rest_in_order() {
    let mut disk = disk(false);
    let first = disk.ask(0, vec![2; 2 * SECTOR]);
    disk.answer(first);
    let flush = disk.now();
    let second = disk.ask(SECTOR, vec![0; 2 * SECTOR]);
    let fits = |disk: &Platter, sectors| disk.check(&content(sectors)).is_ok();
    assert!(fits(&disk, [1, 1, 1, 1]) && fits(&disk, [2, 2, 1, 1]) && fits(&disk, [2, 0, 0, 1]));
    assert!(!fits(&disk, [1, 0, 0, 1]), "the later one overtook");
    disk.flushed(flush);
    assert!(!fits(&disk, [1, 1, 1, 1]) && fits(&disk, [2, 2, 1, 1]) && fits(&disk, [2, 0, 0, 1]));
    disk.answer(second);
    assert!(disk.check_read(0, &content([2, 0, 0, 1])).is_ok());
    assert!(disk.check_read(0, &content([2, 2, 1, 1])).is_err());
}

#[test]
fn without_a_promise_each_sector_is_old_or_new_until_it_is_flushed() {
    let mut disk = disk(true);
    let name = disk.ask(0, vec![2; 2 * SECTOR]);
    disk.answer(name);
    assert!(disk.has_unlogged());
    assert!(disk.check(&content([1, 2, 1, 1])).is_ok() && disk.check(&content([1, 3, 1, 1])).is_err());
    disk.flushed(disk.now());
    assert!(disk.check(&content([1, 2, 1, 1])).is_err() && !disk.has_unlogged());
}
