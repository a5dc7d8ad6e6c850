//! The region's verbs, seen through a second mapping as another process would see them.

use proptest::prelude::*;
use seawall_media::{LINE, Region, Striped, fence};

fn two_views(len: u64) -> (Region, Region) {
    let file = tempfile::tempfile_in("/dev/shm").expect("a temporary file");
    file.set_len(len).expect("room");
    let open = || Region::map(&file, len, false).expect("a mapping");
    (open(), open())
}

proptest! {
    #[test]
    fn a_stream_lands_whole_padded_and_checksummed(slices in prop::collection::vec(
        prop::collection::vec(any::<u8>(), 0..200), 0..12)) {
        let (ours, theirs) = two_views(8192);
        let mut stream = ours.stream(LINE);
        for slice in &slices { stream.push(slice); }
        let sum = stream.finish();
        fence();
        let mut expected = slices.concat();
        expected.resize(expected.len().next_multiple_of(LINE), 0);
        let mut seen = vec![0; expected.len()];
        theirs.read(LINE, &mut seen);
        prop_assert_eq!(&seen, &expected);
        let mut again = Striped::new();
        again.update(&expected);
        prop_assert_eq!(sum, again.finish());
    }

    #[test]
    fn stores_of_any_shape_are_seen(at in 0usize..4000, bytes in prop::collection::vec(any::<u8>(), 0..96)) {
        let (ours, theirs) = two_views(4096);
        ours.store(at, &bytes);
        let mut seen = vec![0; bytes.len()];
        theirs.read(at, &mut seen);
        prop_assert_eq!(seen, bytes);
    }
}

#[test]
#[should_panic(expected = "8 bytes at 4096")]
fn outside_is_refused() {
    let (ours, _) = two_views(4096);
    ours.u64(4096);
}
