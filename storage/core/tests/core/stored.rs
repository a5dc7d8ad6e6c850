//! A file that is published by stores: the kernel moves its times at page faults alone, and a backup goes by them.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime};

use crate::common::{Managed, One, World};
use seawall_core::destage::{Destager, Files};
use seawall_core::file::Flag;

// Holds: internals/SEMANTICS#what-a-program-could-notice
#[test]
fn its_times_move_behind_a_store_at_the_latest_when_it_is_destaged() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    let file = File::options().write(true).open(&m.path).expect("opened");
    let backed_up = SystemTime::now() - Duration::from_secs(3600);
    let changed = || file.metadata().and_then(|meta| meta.modified()).expect("its time");
    for is_dirty in [true, false] {
        world.pwrite(&m, 0, &[7; 3000], 0);
        if !is_dirty {
            world.destage(&m);
        }
        file.set_modified(backed_up).expect("set");
        world.engine.note_store(m.name);
        world.destage(&m);
        assert!(changed() > backed_up, "records to destage: {is_dirty}");
        assert!(!world.engine.state(m.name).has(Flag::STORED));

        file.set_modified(backed_up).expect("set");
        world.destage(&m);
        assert!(changed() <= backed_up, "nothing was stored since");
    }
}

/// SQLite cuts its file to the size it has behind every checkpoint, and stores into it again.
#[test]
fn what_a_truncate_leaves_stays_solid() {
    const END: u64 = 256 << 10;
    let world = World::new(16 << 20);
    let m = world.manage("db");
    world.fsync(&m);
    world.pwrite(&m, 0, &[7; END as usize], 0);
    world.destage(&m);
    if world.engine.solid(m.name) == 0 {
        println!("no ext4 here: no file is ever solid");
        return;
    }
    for (size, solid) in [(END, END), (100_000, 100_000), (2 * END, 100_000)] {
        world.truncate(&m, size);
        assert_eq!(world.engine.solid(m.name), solid, "cut to {size}");
    }
    assert!(world.is_tracked(&m));
}

/// Hears what is written out.
struct Heard<'a> {
    file: One<'a>,
    bytes: Vec<Range<u64>>,
    is_due: bool,
    is_calm: bool,
}

impl<'a> Heard<'a> {
    fn of(m: &'a Managed) -> Self {
        Self { file: One(m), bytes: Vec::new(), is_due: true, is_calm: true }
    }
}

impl Files for Heard<'_> {
    fn descriptor(&mut self, slot: u32) -> io::Result<BorrowedFd<'_>> {
        self.file.descriptor(slot)
    }

    fn write_out(&mut self, _slot: u32, bytes: Range<u64>, _piece: u64) -> io::Result<()> {
        self.bytes.push(bytes);
        Ok(())
    }

    fn is_due(&mut self, _slot: u32, _watermark: u64) -> bool {
        self.is_due
    }

    fn is_calm(&mut self, _slot: u32) -> bool {
        self.is_calm
    }
}

/// On the disk that commits wait for nothing is left for the sync to write at once.
#[test]
fn beside_a_log_on_a_disk_all_is_written_out_and_a_store_waits_until_the_log_is_calm() {
    let world = World::on_block(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    let round = |mut files: Heard<'_>| {
        world.pwrite(&m, 0, &[7; 1000], 0);
        Destager::new(&world.engine, world.who(7)).round(&mut files);
        files.bytes
    };
    world.pwrite(&m, 0, &[7; 300_000], 0);
    round(Heard { is_due: false, ..Heard::of(&m) });
    if world.engine.solid(m.name) == 0 {
        println!("no ext4 here: no file is ever solid");
        return;
    }
    assert_eq!(round(Heard::of(&m)), vec![0..300_000; 1]);
    assert_eq!(world.engine.solid(m.name), 0, "its room was needed");
    round(Heard { is_due: false, is_calm: false, ..Heard::of(&m) });
    assert_eq!(world.engine.solid(m.name), 0);
    round(Heard { is_due: false, ..Heard::of(&m) });
    assert_eq!(world.engine.solid(m.name), 300_000);
}

#[test]
fn what_a_file_has_grown_by_is_written_out_before_its_sync() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    let grown = |from: usize, to: usize, m: &Managed| {
        world.pwrite(m, 0, &vec![7; to - from], from as u64);
        let mut files = Heard::of(m);
        Destager::new(&world.engine, world.who(7)).round(&mut files);
        files.bytes
    };
    let first = grown(0, 100_000, &m);
    if world.engine.solid(m.name) == 0 {
        println!("no ext4 here: what a file has grown by is not known");
        return;
    }
    assert_eq!(first, vec![0..100_000; 1]);
    assert_eq!(grown(100_000, 300_000, &m), vec![100_000..300_000; 1]);
    assert!(grown(0, 1000, &m).iter().all(Range::is_empty), "overwritten in place");
}
