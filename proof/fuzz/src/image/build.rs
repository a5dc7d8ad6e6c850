//! From decisions to a pool: structs with right checksums and hostile content, and plain damage.

use seawall_core::format::{
    Cell, Descriptor, EntryState, Layout, RecordFlags, RecordHeader, RecordKind, RootDescriptor,
    SegmentHeader, Superblock, watermark,
};
use seawall_media::{Identity, LINE, Striped, crc32c};

use super::world::{MANAGED, World};
use crate::input::Input;

/// More steps than these are not looked at.
const STEPS: usize = 200;
/// Whose identity an entry may carry. Not `root/private`: in a registered directory, a registered file is one
/// that may be written.
const THINGS: [&str; 8] =
    [MANAGED[0], MANAGED[1], MANAGED[2], "root", "root/sub", "outside", "outside/canary", "outside/second"];
/// Paths that try to leave.
const PATHS: [&str; 14] = [
    "wal",
    "other",
    "sub/deep",
    "link",
    "linkdir/canary",
    "../outside/canary",
    "sub/../../outside/second",
    "fifo",
    "",
    ".",
    "/etc/hostname",
    "private",
    "sub",
    "linkdir",
];

/// Where the next record goes.
struct Place {
    segment: u32,
    seq: u64,
    at: usize,
}

/// Builds what the input says, beginning with a pool that has one root and the managed files.
pub fn image(world: &mut World, input: &mut Input<'_>) {
    usual(world);
    let mut place = Place { segment: 0, seq: 1, at: LINE };
    segment(world, &place, 0, [0; 4]);
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        match input.u8() % 16 {
            0 => place = open(world, input),
            1 => file(world, input),
            2 => root(world, input),
            3 => Cell::at(Layout::retired()).format(&world.region, input.number()),
            4 => superblock(world, input),
            5 => damage(world, input),
            6 => place.at = (usize::from(input.u16()) % (world.layout.segment_bytes as usize / LINE)) * LINE,
            _ => record(world, &mut place, input),
        }
    }
}

fn usual(world: &World) {
    let root_path = world.path("root");
    add_root(world, 0, "root", root_path.as_os_str().as_encoded_bytes(), 1);
    for (slot, name) in MANAGED.iter().enumerate() {
        let hint = name.trim_start_matches("root/");
        add_file(world, slot as u32, 1, 0, &world.identity(name), hint.as_bytes());
    }
}

fn add_root(world: &World, i: u32, thing: &str, path: &[u8], preset: u32) {
    let id = world.identity(thing);
    let uid = rustix::process::getuid().as_raw();
    let made = RootDescriptor::new(preset, uid, id.fs, (id.kind, &id.handle), path, path);
    if let Some(mut root) = made {
        root.write(&world.region, i);
    }
}

fn add_file(world: &World, slot: u32, generation: u32, root: u32, id: &Identity, path: &[u8]) {
    if let Some(descriptor) = Descriptor::new(root, id.fs, id.kind, &id.handle, path) {
        descriptor.store(&world.region, slot);
        watermark(slot).format(&world.region, 0);
        EntryState { generation, used: true }.write(&world.region, slot);
    }
}

fn segment(world: &World, place: &Place, lane: u32, previous: [u64; 4]) {
    let mut header = SegmentHeader::new(lane, place.seq, world.uuid_low);
    header.previous_seq = previous[0];
    header.previous_lsn = previous[1];
    header.previous = previous[2] as u32;
    header.previous_end = previous[3] as u32;
    header.store(&world.region, world.layout.segment(place.segment));
}

/// Opens a segment, perhaps with a claim about another one.
fn open(world: &World, input: &mut Input<'_>) -> Place {
    let number = u32::from(input.u8()) % world.layout.segments;
    let place = Place { segment: number, seq: input.number(), at: LINE };
    let claims = if input.u8() & 1 == 0 { [0; 4] } else { std::array::from_fn(|_| input.number()) };
    segment(world, &place, u32::from(input.u8()), claims);
    place
}

fn record(world: &World, place: &mut Place, input: &mut Input<'_>) {
    let (how, odd) = (input.u8(), input.u8());
    let kind = if how & 1 == 0 { RecordKind::Write } else { RecordKind::Truncate };
    let payload = input.bytes(usize::from(how >> 4));
    let mut header = RecordHeader::new(kind);
    header.flags = if how & 2 == 0 { RecordFlags::LAST } else { input.u8() };
    header.part = if how & 4 == 0 { 0 } else { input.u16() };
    header.lsn = input.number();
    header.segment_seq = place.seq;
    header.slot = u32::from(input.u8()) % 5;
    header.generation = 1 + u32::from(odd == 255);
    header.offset = input.number();
    header.stored = payload.len() as u32;
    header.length = if how & 8 == 0 { header.stored } else { input.number() as u32 };
    let mut padded = payload.to_vec();
    padded.resize(payload.len().next_multiple_of(LINE), 0);
    let mut sum = Striped::new();
    sum.update(&padded);
    header.payload = sum.finish();
    if place.at + header.extent() > world.layout.segment_bytes as usize {
        return;
    }
    let at = world.layout.segment(place.segment) + place.at;
    world.region.store(at + LINE, &padded);
    place.at += header.extent();
    header.store(&world.region, at);
}

fn file(world: &World, input: &mut Input<'_>) {
    let (slot, generation) = (u32::from(input.u8()) % 5, u32::from(input.u8() % 4));
    let thing = *input.pick(&THINGS);
    let length = usize::from(input.u8());
    let path = if length < 128 { input.pick(&PATHS).as_bytes() } else { input.bytes(length) };
    let root = input.number() as u32;
    add_file(world, slot, generation, root, &world.identity(thing), path);
    if input.u8() & 1 == 1 {
        watermark(slot).format(&world.region, input.number());
    }
}

fn root(world: &World, input: &mut Input<'_>) {
    let i = u32::from(input.u8()) % 17;
    let thing = *input.pick(&THINGS);
    let named: &&str = input.pick(&THINGS);
    let path = world.path(named);
    let raw = input.u8();
    let path = if raw < 128 { path.as_os_str().as_encoded_bytes() } else { input.bytes(raw.into()) };
    // A directory outside under its own name is a registered one: whoever may write the pool may say so.
    if i < 16 && !thing.starts_with("outside") {
        add_root(world, i, thing, path, u32::from(input.u8() % 4));
    }
}

/// A superblock with fields of the input's, and a right checksum.
fn superblock(world: &World, input: &mut Input<'_>) {
    let copy = usize::from(input.u8() & 1) * 4096;
    let at = usize::from(input.u8()) % 96;
    let bytes = input.bytes(8);
    let mut block = vec![0; Superblock::FIELDS.1];
    world.region.read(copy, &mut block);
    for (to, from) in block[at..].iter_mut().zip(bytes) {
        *to = *from;
    }
    let sum = offset_of_checksum();
    let checksum = crc32c(&block[..sum]);
    block[sum..sum + 4].copy_from_slice(&checksum.to_le_bytes());
    world.region.store(copy, &block);
}

fn offset_of_checksum() -> usize {
    let found = Superblock::FIELDS.0.iter().find(|(name, _)| *name == "checksum");
    found.expect("a superblock has a checksum").1
}

/// Bytes anywhere.
fn damage(world: &World, input: &mut Input<'_>) {
    let zone = match input.u8() % 5 {
        0 => 0,
        1 => Layout::retired(),
        2 => Layout::root(0),
        3 => Layout::file(0),
        _ => world.layout.segment(u32::from(input.u8()) % world.layout.segments),
    };
    let at = zone + usize::from(input.u16());
    let length = usize::from(input.u8() % 16);
    // The last segment ends where the pool ends.
    let room = world.region.len().saturating_sub(at);
    world.region.store(at, input.bytes(length.min(room)));
}
