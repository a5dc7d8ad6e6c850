//! Memory with a desk, for tests.

use seawall_media::Region;
use seawall_wire::desk::Desk;

/// Memory with a desk for one segment at its front.
pub fn desk_memory() -> Region {
    let file = tempfile::tempfile_in("/dev/shm").expect("a file");
    let len = Desk::bytes_for(1) as u64;
    file.set_len(len).expect("room");
    Region::map(&file, len, false).expect("a mapping")
}

#[test]
fn what_is_on_a_seat_is_nobody_elses() {
    let segments = 3;
    let file = tempfile::tempfile_in("/dev/shm").expect("a file");
    let len = Desk::bytes_for(segments) as u64;
    file.set_len(len).expect("room");
    let region = Region::map(&file, len, false).expect("a mapping");
    let desk = Desk::new(&region, 0);
    let mut ranges = Vec::new();
    for seat in 0..Desk::SEATS {
        ranges.push(desk.buffer(seat));
        ranges.push((desk.table(seat).0, desk.table(seat).1 as usize * seawall_media::block::EXTENT_BYTES));
        let (first, _) = desk.note(seat, segments, 0);
        let at = std::ptr::from_ref(first) as usize - region.base();
        ranges.push((at, segments as usize * 16));
    }
    ranges.push((desk.anchor_page(), 4096));
    let cursors = std::ptr::from_ref(desk.cursor(0)) as usize - region.base();
    ranges.push((cursors, segments as usize * 8));
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{ranges:?}");
    assert!(ranges.last().is_some_and(|(at, bytes)| at + bytes <= region.len()));
}
