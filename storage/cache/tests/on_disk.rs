//! A cache whose blocks lie on a disk: which are brought there, which of these are served, and what the disk does wrong.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::sync::atomic::Ordering::SeqCst;

use seawall_cache::set::Policy;
use seawall_cache::shared::{
    Cache, CachedFile, FAILURES_MAX, FromDisk, Holding, Identity, Layout, Lookup, Off, Offered, OpenError,
    OperationOwner,
};
use seawall_media::Region;

const LAYOUT: Layout = Layout { block_bytes: 4096, sets: 4, files: 2, operations: 8, staged: 3 };
const BOOT: [u8; 16] = [1; 16];
const OTHER_BOOT: [u8; 16] = [2; 16];
const FILE: Identity = Identity { fs: [7; 16], inode: 1, generation: 1, size: 100, mtime_ns: 5, ctime_ns: 6 };

/// What the disk does with the next reads.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    Well,
    Wrongly,
    WronglyOnce,
    NotNow,
    Not,
}

thread_local! {
    static DISK: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static READS: Cell<Reads> = const { Cell::new(Reads::Well) };
}

fn read(at: u64, into: &mut [u8]) -> FromDisk {
    let at = at as usize;
    DISK.with_borrow(|disk| into.copy_from_slice(&disk[at..at + into.len()]));
    match READS.get() {
        Reads::Well => {}
        Reads::Wrongly => into[100] ^= 1,
        Reads::WronglyOnce => {
            into[100] ^= 1;
            READS.set(Reads::Well);
        }
        Reads::NotNow => return FromDisk::NotNow,
        Reads::Not => return FromDisk::Failed,
    }
    FromDisk::All
}

fn write(at: u64, block: &[u8]) -> bool {
    let at = at as usize;
    DISK.with_borrow_mut(|disk| disk[at..at + block.len()].copy_from_slice(block));
    true
}

struct Scene {
    memory: File,
    cache: Cache,
    file: CachedFile,
}

impl Scene {
    fn new() -> Self {
        let memory = memory();
        DISK.set(vec![0; LAYOUT.stored_bytes() as usize]);
        let made = Cache::create(region(&memory), LAYOUT, [9; 16], BOOT, false);
        Self::of(memory, made.expect("a cache"))
    }

    fn of(memory: File, cache: Cache) -> Self {
        let cache = cache.reading(read);
        cache.watcher().store(1, SeqCst);
        let file = cache.enter(&FILE).expect("room").file;
        Self { memory, cache, file }
    }

    fn look(&self, number: u32) -> Lookup {
        let mut buffer = vec![0; 4096];
        let looked = self.cache.look_up(self.file, number, &mut buffer);
        if looked == Lookup::Hit {
            assert_eq!(buffer, content(number));
        }
        looked
    }

    fn is_hit(&self, number: u32) -> bool {
        self.look(number) == Lookup::Hit
    }

    fn offer(&self, number: u32) -> Offered {
        let Lookup::Miss(Some(token)) = self.look(number) else { panic!("{number} may not be filled") };
        self.cache.offer(OperationOwner::new(2, 1), &token, &content(number))
    }

    fn bring(&self, write: impl Fn(u64, &[u8]) -> bool) -> Vec<Offered> {
        let (mut from, mut all, mut memory) = (0, Vec::new(), vec![0; 4096]);
        while let Some((staged, next)) = self.cache.next_staged(from) {
            all.push(self.cache.bring(OperationOwner::new(1, 1), &staged, &mut memory, &write));
            from = next;
        }
        all
    }

    fn fill(&self, number: u32) {
        assert_eq!(self.offer(number), Offered::Staged);
        assert_eq!(self.bring(write), [Offered::Admitted]);
    }

    /// Everybody has ended, and somebody opens the index again.
    fn again(self, boot: [u8; 16]) -> Result<(Self, u64), OpenError> {
        let (cache, found) = Cache::recover(region(&self.memory), boot)?;
        Ok((Self::of(self.memory, cache), found.kept))
    }
}

fn memory() -> File {
    let file = tempfile::tempfile_in("/dev/shm").expect("a file");
    file.set_len(LAYOUT.total_bytes().expect("sane") as u64).expect("room");
    file
}

fn region(memory: &File) -> Region {
    Region::map(memory, memory.metadata().expect("a length").len(), false).expect("a mapping")
}

fn content(number: u32) -> Vec<u8> {
    vec![number as u8 + 1; 4096]
}

#[test]
fn what_is_offered_is_served_when_it_was_brought() {
    let scene = Scene::new();
    assert_eq!(scene.offer(0), Offered::Staged);
    assert!(!scene.is_hit(0), "it is in memory only");
    assert_eq!(scene.bring(write), [Offered::Admitted]);
    assert!(scene.is_hit(0) && scene.cache.look(scene.file, 0) == Lookup::Hit);
    assert_eq!(scene.cache.admitted(), 1);
}

// Holds: internals/CACHE#tested
#[test]
fn a_write_since_it_was_missed_makes_it_stale() {
    let scene = Scene::new();
    scene.offer(0);
    scene.cache.end_write(scene.cache.begin_write(OperationOwner::new(3, 1), scene.file, 0..1));
    assert_eq!(scene.bring(|_, _| panic!("it is not written")), [Offered::Stale]);
    scene.offer(0);
    let writes_meanwhile = |at, block: &[u8]| {
        scene.cache.end_write(scene.cache.begin_write(OperationOwner::new(3, 1), scene.file, 0..1));
        write(at, block)
    };
    assert_eq!(scene.bring(writes_meanwhile), [Offered::Stale]);
    assert!(!scene.is_hit(0));
    scene.fill(0);
    assert!(scene.is_hit(0));
}

#[test]
fn who_finds_no_room_drops_its_block_and_the_same_block_is_brought_once() {
    let scene = Scene::new();
    let of_one: Vec<_> = (0..3).map(|_| scene.offer(0)).collect();
    assert_eq!(of_one, [Offered::Staged; 3]);
    assert_eq!(scene.offer(1), Offered::Busy);
    assert_eq!(scene.cache.dropped(), 1);
    assert_eq!(scene.bring(write), [Offered::Admitted, Offered::Passed, Offered::Passed]);
    scene.fill(1);
    assert!(scene.is_hit(0) && scene.is_hit(1));
}

#[test]
fn a_disk_that_refuses_writes_is_counted_and_switches_all_off() {
    let scene = Scene::new();
    for number in 0..FAILURES_MAX as u32 {
        assert_eq!(scene.cache.off(), None);
        scene.offer(number);
        assert_eq!(scene.bring(|_, _| false), [Offered::Failed]);
        assert!(!scene.is_hit(number));
    }
    assert_eq!((scene.cache.disk_errors(), scene.cache.off()), (FAILURES_MAX, Some(Off::Disk)));
}

#[test]
fn a_disk_that_refuses_reads_is_counted_and_switches_all_off() {
    let scene = Scene::new();
    let numbers = 0..FAILURES_MAX as u32;
    numbers.clone().for_each(|number| scene.fill(number));
    READS.set(Reads::NotNow);
    assert!(!scene.is_hit(0) && scene.cache.disk_errors() == 0, "that nobody could ask is no error");
    READS.set(Reads::Not);
    for (errors, number) in (1..).zip(numbers) {
        assert!(!scene.is_hit(number) && scene.cache.disk_errors() == errors);
        assert!(
            scene.cache.look(scene.file, number) != Lookup::Hit,
            "a block that cannot be read is dropped"
        );
    }
    READS.set(Reads::Well);
    assert_eq!(scene.cache.off(), Some(Off::Disk));
}

#[test]
fn wrong_bytes_are_asked_for_twice_and_then_dropped() {
    let scene = Scene::new();
    scene.fill(0);
    READS.set(Reads::WronglyOnce);
    assert!(scene.is_hit(0) && scene.cache.failures() == 0);
    READS.set(Reads::Wrongly);
    assert!(!scene.is_hit(0) && scene.cache.failures() == 1);
    READS.set(Reads::Well);
    assert!(!scene.is_hit(0), "it is gone for good");
}

#[test]
fn nothing_enters_while_the_budget_is_used_up() {
    let scene = Scene::new();
    scene.offer(0);
    scene.cache.set_spent(true);
    assert_eq!((scene.offer(1), scene.cache.over_budget()), (Offered::Passed, 1));
    let (staged, _) = scene.cache.next_staged(0).expect("one is on its way");
    scene.cache.drop_staged(&staged);
    assert_eq!((scene.bring(write).len(), scene.cache.over_budget()), (0, 2));
    scene.cache.set_spent(false);
    scene.fill(0);
}

/// As when the daemon saves it, and the next one brings it back.
// Holds: internals/CACHE#tested
#[test]
fn an_index_that_was_closed_is_warm_after_the_machine_restarted_and_no_other_is() {
    for is_closed in [true, false] {
        let scene = Scene::new();
        (0..4).for_each(|number| scene.fill(number));
        scene.cache.leave(scene.file, &FILE, i64::MAX);
        if is_closed {
            scene.cache.close();
        }
        match scene.again(OTHER_BOOT) {
            Ok((scene, kept)) => {
                assert!(is_closed && kept == 4);
                assert!((0..4).all(|number| scene.is_hit(number)));
            }
            Err(why) => assert!(!is_closed && why == OpenError::Lost, "{why}"),
        }
    }
}

#[test]
fn after_a_crash_of_all_processes_it_is_warm_and_nothing_is_on_its_way() {
    let scene = Scene::new();
    scene.fill(0);
    scene.offer(1);
    scene.cache.note(scene.file, &FILE, i64::MAX);
    let (scene, kept) = scene.again(BOOT).expect("the same boot");
    assert_eq!((kept, scene.is_hit(0)), (1, true));
    assert!(scene.cache.next_staged(0).is_none());
    (1..4).for_each(|number| assert_eq!(scene.offer(number), Offered::Staged));
}

/// Without a way to the disk nothing is a hit, and nothing is wrong with it.
#[test]
fn who_has_no_way_to_the_disk_misses() {
    let scene = Scene::new();
    scene.fill(0);
    let without = Cache::join(region(&scene.memory)).expect("the zone");
    assert!(matches!(without.look_up(scene.file, 0, &mut [0; 4096]), Lookup::Miss(Some(_))));
    assert!(scene.is_hit(0) && scene.cache.disk_errors() == 0);
}

/// Policies are applied while a block of a file that is to be kept is on its way.
#[test]
fn a_place_that_is_being_filled_stays_kept() {
    let scene = Scene::new();
    scene.cache.set_policy(scene.file, Policy::Keep);
    let Lookup::Miss(Some(token)) = scene.look(1) else { panic!("it may be filled") };
    let meanwhile = |at: u64, block: &[u8]| {
        scene.cache.arrange(&scene.cache.arrangement());
        write(at, block)
    };
    let offered = scene.cache.bring_early(OperationOwner::new(1, 1), &token, &content(1), meanwhile);
    assert_eq!(offered, Offered::Admitted);
    assert_eq!(scene.cache.holdings()[&scene.file.slot], Holding { blocks: 1, kept: 1 });
}
