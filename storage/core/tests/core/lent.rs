//! A front of a pool on a block device that cannot rely on its descriptors: refused without a way to the journal; led
//! for by the daemon without the descriptor; and never told that something is durable that is not.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};

use crate::common::{Calls, Managed, World, roll_back};
use seawall_core::journal::{Journal, Lender, Way};
use seawall_core::store::Store;
use seawall_core::{At, AttachError, Engine, Errno, FileRef, JoinError, table, takeover};
use seawall_media::Region;
use seawall_media::block::Device;
use seawall_wire::message::{Reply, Status};
use seawall_wire::shm::Shm;

const IMAGE: u64 = 16 << 20;
const NONE: u32 = 0;
const GOOD: u32 = 1;
const REFUSES: u32 = 2;

/// A front's descriptors, and the daemon as its messages would reach it.
struct Outside {
    daemon: Engine,
    answers: AtomicBool,
    device: File,
    read_only: File,
    which: AtomicU32,
    asked: AtomicU32,
}

impl Lender for Outside {
    fn device(&self) -> Option<BorrowedFd<'_>> {
        match self.which.load(SeqCst) {
            GOOD => Some(self.device.as_fd()),
            REFUSES => Some(self.read_only.as_fd()),
            _ => None,
        }
    }

    fn harden(&self) -> Result<(), Errno> {
        self.asked.fetch_add(1, SeqCst);
        if self.answers.load(SeqCst) { self.daemon.harden_all() } else { Err(Errno::IO) }
    }

    fn retire(&self, slot: u32, generation: u32, lsn: u64) -> Result<(), Errno> {
        self.asked.fetch_add(1, SeqCst);
        if !self.answers.load(SeqCst) {
            return Err(Errno::IO);
        }
        self.daemon.retire_for(FileRef { slot, generation }, lsn)
    }
}

fn shm(world: &World) -> (File, u64) {
    let path = takeover::shm_path(world.memory.path(), &world.pool);
    let file = File::options().read(true).write(true).open(path).expect("the run-time memory");
    let len = file.metadata().expect("stat").len();
    (file, len)
}

/// Another process, as far as an engine can tell.
fn attach(world: &World, way: Option<Way>) -> Result<Engine, AttachError> {
    let (file, len) = shm(world);
    let shm = Shm::open(Region::map(&file, len, false).expect("a mapping")).expect("a run-time memory");
    let image = Region::map(&world.pool.file, world.pool.region.len() as u64, false).expect("a mapping");
    let at = world.engine.pool().journal().expect("a journal").desk_at();
    let store = match way {
        Some(way) => Store::journaled(image, Journal::new(way, at)),
        None => image.into(),
    };
    Engine::attach(store, shm)
}

/// A front with this descriptor of the journal.
fn front(world: &World, which: u32) -> (Engine, &'static Outside) {
    let own = || File::options().read(true).write(true).open(&world.pool.path).expect("the journal");
    let outside: &'static Outside = Box::leak(Box::new(Outside {
        daemon: attach(world, Some(Way::Own(Device::new(own().into())))).expect("the daemon"),
        answers: AtomicBool::new(true),
        device: own(),
        read_only: File::open(&world.pool.path).expect("the journal"),
        which: AtomicU32::new(which),
        asked: AtomicU32::new(0),
    }));
    (attach(world, Some(Way::Lent(outside))).expect("a front"), outside)
}

fn managed(world: &World) -> Managed {
    let m = world.manage("file");
    m.file.write_all_at(&[1; 4096], 0).expect("room");
    assert!(world.fsync(&m), "the first sync is real");
    m
}

fn write(world: &World, engine: &Engine, m: &Managed, byte: u8) {
    let data = [byte; 100];
    let publish = || m.file.write_at(&data, 0).map_err(|_| Errno::IO);
    let (who, at) = (world.who(3), At::Offset(0));
    let done = engine.write(who, m.name, m.file.as_fd(), at, [&data[..]].into_iter(), publish);
    assert_eq!(done, Ok(100));
}

/// A sync that must not be real.
fn sync(world: &World, engine: &Engine, m: &Managed) -> Result<(), Errno> {
    engine.fsync(world.who(3), m.name, || panic!("a real sync"))
}

fn tidy(world: &World) {
    std::fs::remove_dir_all(world.pool.path.parent().expect("a directory")).expect("removed");
}

#[test]
fn an_image_without_a_way_to_its_journal_is_refused() {
    let world = World::on_block(IMAGE);
    assert_eq!(attach(&world, None).err(), Some(AttachError::NoJournal));
    let (file, len) = shm(&world);
    let mut reply = Reply::new(Status::Ok);
    (reply.pool_len, reply.shm_len) = (world.pool.region.len() as u64, len);
    let joined = Engine::join(&reply, Some(world.pool.file.as_fd()), Some(file.as_fd()), None);
    assert_eq!(joined.err(), Some(JoinError::Attach(AttachError::NoJournal)));
    // A front that maps the pool and not what lies behind it.
    reply.pool_len = IMAGE;
    let way = Way::Own(Device::new(File::open(&world.pool.path).expect("the journal").into()));
    let joined = Engine::join(&reply, Some(world.pool.file.as_fd()), Some(file.as_fd()), Some(way));
    assert_eq!(joined.err(), Some(JoinError::Attach(AttachError::Foreign)));
    tidy(&world);
}

#[test]
fn an_image_is_no_pool_to_be_opened() {
    let world = World::on_block(IMAGE);
    let image = seawall_core::pool::block::image_path(world.memory.path(), world.pool.superblock.uuid);
    let refused = seawall_core::pool::open(&image).err().expect("refused").to_string();
    assert!(refused.contains("name the log instead"), "{refused}");
    tidy(&world);
}

#[test]
fn the_daemon_leads_for_who_lost_the_descriptor() {
    for which in [NONE, REFUSES] {
        let world = World::on_block(IMAGE);
        let m = managed(&world);
        let (engine, outside) = front(&world, which);
        write(&world, &engine, &m, 2);
        assert_eq!(sync(&world, &engine, &m), Ok(()));
        assert_eq!(outside.asked.load(SeqCst), 1);
        outside.which.store(GOOD, SeqCst);
        write(&world, &engine, &m, 3);
        assert_eq!(sync(&world, &engine, &m), Ok(()));
        assert_eq!(outside.asked.load(SeqCst), 1, "it leads itself again");
        let path = m.path.clone();
        roll_back(&m, &[1; 4096]);
        drop((m, engine));
        let (report, _dir, _memory) = world.recover();
        assert_eq!(report.expect("recovered").live, 2);
        assert_eq!(std::fs::read(path).expect("readable")[..101], [[3; 100].as_slice(), &[1]].concat());
    }
}

#[test]
fn without_descriptor_and_daemon_a_sync_fails_and_the_device_is_not_given_up() {
    for which in [NONE, REFUSES] {
        let world = World::on_block(IMAGE);
        let m = managed(&world);
        let (engine, outside) = front(&world, which);
        outside.answers.store(false, SeqCst);
        write(&world, &engine, &m, 2);
        for _ in 0..2 {
            assert_eq!(sync(&world, &engine, &m), Err(Errno::IO), "never taken for durable");
        }
        assert!(!world.fsync(&m), "whoever has the descriptor goes on");
        assert_eq!(sync(&world, &engine, &m), Ok(()), "and then all is durable");
        tidy(&world);
    }
}

#[test]
fn a_real_sync_without_the_descriptor_retires_by_the_daemon_or_fails() {
    for (which, answers) in [(NONE, true), (REFUSES, true), (NONE, false), (REFUSES, false)] {
        let world = World::on_block(IMAGE);
        let m = managed(&world);
        let (engine, outside) = front(&world, which);
        outside.answers.store(answers, SeqCst);
        world.pwrite(&m, 0, &[2; 100], 0);
        assert!(!world.fsync(&m), "a record that a power cut would replay");
        engine.disturb(m.name);
        let done = engine.fsync(world.who(3), m.name, || m.file.sync_data().map_err(|_| Errno::IO));
        assert_eq!((done, outside.asked.load(SeqCst)), (if answers { Ok(()) } else { Err(Errno::IO) }, 1));
        let slot = m.name.slot;
        drop((m, engine));
        let World { memory, pool, .. } = &world;
        let copy = memory.path().join("copy");
        std::fs::copy(&pool.path, &copy).expect("a copy");
        let elsewhere = tempfile::tempdir_in("/dev/shm").expect("memory");
        let pool = seawall_core::pool::block::open_in(&copy, elsewhere.path()).expect("after a power cut");
        let files = table::files(&pool).expect("a table");
        let entry = files.iter().find(|f| f.slot == slot).expect("the file");
        let live = seawall_core::recover::scan(&pool, &[(slot, entry.clone())].into_iter().collect()).live;
        assert_eq!(live.is_empty(), answers);
        tidy(&world);
    }
}
