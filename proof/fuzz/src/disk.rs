//! A guest that lays out its disk's requests as it likes: descriptors, lengths, loops, indirect tables, in memory with a hole.
//!
//! What must hold: each request has a status, or no place for one; whatever was asked for, the image is as large as before, and
//! what lies outside of the sectors that the guest named is untouched. In: a recipe for some tables of descriptors.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{LazyLock, Mutex, PoisonError};

use seawall_daemon::AddRoot;
use seawall_daemon::control::{Added, Control};
use seawall_disk::{Disk, Limits, Memory, Options};
use seawall_wire::message::Kind;
use vm_memory::{Bytes, GuestAddress};

use crate::input::Input;
use crate::{daemon, scratch};

/// Bytes of the image.
const IMAGE: u64 = 1 << 20;
/// What no request may change: the sectors from here on are named by none. The longest write has nine stretches of 64 KiB.
const KEPT: u64 = 768 << 10;
/// The guest's memory: two stretches, and nothing in between.
const LOW: u64 = 64 << 10;
const HIGH: u64 = 128 << 10;
const END: u64 = HIGH + (64 << 10);
const TABLE: u64 = 0x1000;
const ENTRIES: u16 = 32;

static SCENE: LazyLock<Mutex<Scene>> = LazyLock::new(|| Mutex::new(Scene::new()));

/// A disk, and its guest's memory.
struct Scene {
    disk: Disk,
    image: File,
    memory: Memory,
    /// The directory stays registered as long as this lives.
    _control: Control,
}

/// The target.
pub fn target(bytes: &[u8]) {
    let scene = SCENE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut input = Input::new(bytes);
    for _ in 0..8 {
        if input.is_empty() {
            break;
        }
        scene.ask(&mut input);
    }
    scene.check();
}

impl Scene {
    fn new() -> Self {
        let (dir, memory) = (scratch::directory("/var/tmp"), scratch::directory("/dev/shm"));
        let path = dir.join("vm.img");
        std::fs::write(&path, vec![0x5a; IMAGE as usize]).expect("made");
        let image = File::open(&path).expect("opened");
        let pool = daemon::pool_in(&memory);
        // It serves until this process ends.
        drop(daemon::start(&pool));
        let control = Control::connect(&pool).expect("a pool").expect("a daemon");
        let root = AddRoot {
            preset: "disk".into(),
            policy: "atomic".into(),
            path: dir.clone(),
            data: dir,
            recovery: None,
        };
        let _: Added = control.request(Kind::AddRoot, &root).expect("registered");
        let options = Options {
            image: path,
            is_read_only: false,
            is_atomic: true,
            serial: "fuzzed".into(),
            queues: 1,
            limits: Limits { requests: None, bytes: None },
            is_incoming: false,
        };
        let disk = Disk::new(options, &pool).expect("a disk");
        let ranges = [(GuestAddress(0), LOW as usize), (GuestAddress(HIGH), (END - HIGH) as usize)];
        let memory = Memory::from_ranges(&ranges).expect("memory");
        Self { disk, image, memory, _control: control }
    }

    /// One request.
    fn ask(&self, input: &mut Input<'_>) {
        let entries = 1 + input.u8() % 6;
        for i in 0..u16::from(entries) {
            let bytes = descriptor(input, i);
            self.memory.write_slice(&bytes, GuestAddress(TABLE + u64::from(i) * 16)).expect("there");
        }
        // An indirect table, and the head of a request, where descriptors lead to.
        for i in 0..4 {
            let bytes = descriptor(input, i);
            self.memory.write_slice(&bytes, GuestAddress(0x2000 + u64::from(i) * 16)).expect("there");
        }
        self.memory.write_slice(&head(input), GuestAddress(0x3000)).expect("there");
        self.memory.write_slice(&range(input), GuestAddress(0x3010)).expect("there");
        let size = if input.u8() < 250 { ENTRIES } else { input.u16() };
        let table = if input.u8() < 250 { TABLE } else { input.u64() };
        let first = if input.u8() < 250 { 0 } else { input.u16() };
        let _ = self.disk.carry_out(first, (table, size), &self.memory);
    }

    fn check(&self) {
        assert_eq!(self.image.metadata().expect("there").len(), IMAGE, "as large as before");
        let mut kept = vec![0; (IMAGE - KEPT) as usize];
        self.image.read_exact_at(&mut kept, KEPT).expect("read");
        assert!(kept.iter().all(|byte| *byte == 0x5a), "nobody named these sectors");
    }
}

/// A descriptor: most lead somewhere.
fn descriptor(input: &mut Input<'_>, i: u16) -> [u8; 16] {
    let at = match input.u8() % 12 {
        0..=3 => 0x3000,
        4 | 5 => 0x4000 + u64::from(input.u16() % 0x8000),
        6 => 0x2000,
        7 => LOW - u64::from(input.u8()),
        8 => HIGH + u64::from(input.u16()),
        9 => LOW + u64::from(input.u16()),
        10 => u64::MAX - u64::from(input.u8()),
        _ => input.u64(),
    };
    let bytes: u32 = match input.u8() % 8 {
        0 | 1 => 16,
        2 | 3 => 512,
        4 => 1,
        5 => u32::from(input.u8()) * 16,
        6 => u32::from(input.u16()),
        _ => input.u64() as u32,
    };
    // Next, write-only, indirect.
    let flags = u16::from(input.u8()) & 7;
    let next = if input.u8() < 240 { i + 1 } else { u16::from(input.u8()) };
    let mut all = [0; 16];
    all[..8].copy_from_slice(&at.to_le_bytes());
    all[8..12].copy_from_slice(&bytes.to_le_bytes());
    all[12..14].copy_from_slice(&flags.to_le_bytes());
    all[14..].copy_from_slice(&next.to_le_bytes());
    all
}

/// What is asked for, and where.
fn head(input: &mut Input<'_>) -> [u8; 16] {
    let kind: u32 = *input.pick(&[0, 1, 1, 4, 8, 11, 13, 0xffff]);
    let mut all = [0; 16];
    all[..4].copy_from_slice(&kind.to_le_bytes());
    all[8..].copy_from_slice(&sector(input).to_le_bytes());
    all
}

/// Where zeros are wanted.
fn range(input: &mut Input<'_>) -> [u8; 16] {
    let mut all = [0; 16];
    all[..8].copy_from_slice(&sector(input).to_le_bytes());
    let sectors = if input.u8() < 200 { u32::from(input.u8() % 64) } else { input.u64() as u32 };
    // None of them reaches what is kept, unless it reaches behind the end.
    let sectors = if sectors < 512 { sectors % 64 } else { sectors | 1 << 20 };
    all[8..12].copy_from_slice(&sectors.to_le_bytes());
    all[12..].copy_from_slice(&u32::from(input.u8() % 4).to_le_bytes());
    all
}

/// One that is far from what is kept, or one that is outside.
fn sector(input: &mut Input<'_>) -> u64 {
    match input.u8() % 8 {
        0..=5 => u64::from(input.u8()),
        6 => IMAGE / 512 + u64::from(input.u8()),
        _ => input.u64() | 1 << 20,
    }
}
