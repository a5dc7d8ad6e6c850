//! `seawall disk`: a guest's disk, frozen, made larger, moved, met by others, and sent nonsense.

use crate::common;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::disks::{Backend, Disks, Model, SIZE};
use crate::common::{Place, kill};
use seawall_guest::{Guest, LOG_ALL, Op, Trouble};

#[test]
fn what_cannot_be_a_disk_is_refused() {
    let disks = Disks::new();
    let at = |name: &str| disks.place.data.path().join(name).display().to_string();
    let refused = |image: &str, words: &[&str]| {
        disks.once(&[&at(image), "--socket", &disks.socket()]).fails(1, words);
    };
    refused("nowhere.img", &["nowhere.img", "--create"]);
    fs::write(at("a.qcow2"), [0; 512]).expect("written");
    refused("a.qcow2", &[".img or .raw"]);
    fs::write(at("b.img"), [0; 513]).expect("written");
    refused("b.img", &["513 bytes", "multiple of 512"]);
    fs::write(at("c.img"), b"QFI\xfb and so on".repeat(512)).expect("written");
    refused("c.img", &["qcow2", "qemu-img convert"]);
    fs::create_dir(at("d.img")).expect("made");
    refused("d.img", &["d.img"]);
    disks
        .once(&[&at("e.img"), "--socket", &disks.socket(), "--create", "1000"])
        .fails(1, &["multiple of 512"]);
    let backend = disks.serve(&[]);
    // Its name has its guard by now: whoever opens the image itself meets the lock.
    let second =
        disks.once(&[&disks.image().display().to_string(), "--socket", &format!("{}.2", disks.socket())]);
    second.fails(1, &["in use by another program"]);
    disks.once(&[&at("f.img"), "--create", "1M", "--socket", &disks.socket()]).fails(1, &["already served"]);
    backend.ends();
}

#[test]
fn a_guest_finds_what_it_wrote_and_its_flushes_wait_for_no_disk() {
    let disks = Disks::new();
    let backend = disks.serve(&["--serial", "disk-of-a-test"]);
    let mut guest = disks.guest(1);
    assert_eq!(guest.bytes(), SIZE);
    assert_eq!(guest.ask(Op::Id).expect("answered")[..14], *b"disk-of-a-test");
    let mut model = Model::new(1);
    model.work(&mut guest, 400);
    let served = disks.place.status()["disks"][0].clone();
    assert_eq!(
        (&served["queues"], served["socket"].as_str()),
        (&1.into(), Some(&*disks.socket())),
        "{served}"
    );
    let file = disks.file();
    assert_eq!((&file["tracked"], &file["atomic"]), (&true.into(), &true.into()), "{file}");
    assert!(file["absorbed"].as_u64() > Some(20) && file["real_syncs"].as_u64() < Some(5), "{file}");
    for (op, why) in [
        (Op::Read(SIZE, 512), "behind the end"),
        (Op::Write(SIZE - 512, vec![1; 1024]), "over the end"),
        (Op::Read(u64::MAX - 511, 512), "an offset that overflows"),
        (Op::Zeros(0, 1 << 30), "longer than the disk says"),
    ] {
        assert!(matches!(guest.ask(op), Err(Trouble::Status(1))), "{why}");
    }
    guest.end().expect("ended");
    backend.ends();
    model.compare(&disks.image());
}

/// Nothing of the guest's is torn in what is copied meanwhile, and reads go on.
// Holds: admin/VIRTUAL_DISK#a-snapshot-or-a-copy-of-the-image
#[test]
fn a_frozen_disk_is_its_image_and_its_guests_writes_wait() {
    let disks = Disks::new();
    let backend = disks.serve(&[]);
    let mut guest = disks.guest(1);
    let mut model = Model::new(5);
    model.work(&mut guest, 50);
    let seawall = |words: &[&str]| disks.place.seawall(&[words, &["--pool", disks.place.pool()]].concat());
    assert!(seawall(&["freeze"]).succeeds().out.contains("writes wait"));
    model.compare(&disks.image());
    for i in 0..12 {
        guest.begin(0, Op::Write(i * 4096, vec![9; 4096])).expect("room");
    }
    assert!(guest.next_within(0, Duration::from_millis(300)).is_err(), "it waits");
    model.compare(&disks.image());
    seawall(&["thaw"]).succeeds();
    for _ in 0..12 {
        guest.next(0).expect("answered");
    }
    let file = disks.file();
    assert_eq!((&file["tracked"], &file["live"]), (&true.into(), &true.into()), "{file}");
    assert_eq!(guest.ask(Op::Read(0, 4096)).expect("read"), [9; 4096]);
    guest.end().expect("ended");
    backend.ends();
    assert_eq!(fs::read(disks.image()).expect("read")[..12 * 4096], vec![9; 12 * 4096]);
}

/// The block cache answers what the page cache lacks, and never with what was written over.
#[test]
fn reads_come_from_the_block_cache_and_are_what_was_written() {
    let disks = Disks::new();
    let image = File::open(disks.image()).expect("opened");
    image.sync_all().expect("synced");
    rustix::fs::fadvise(&image, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
    drop(image);
    let backend = disks.serve(&["--cache", "64M", "--cache-block", "4K"]);
    let mut guest = disks.guest(1);
    let mut model = Model::new(8);
    for round in 0..12 {
        for at in (0..SIZE).step_by(4096 << (round % 3)) {
            let op = Op::Read(at, 4096 << (round % 3));
            let found = guest.ask(op.clone()).expect("read");
            model.check(&op, &found);
        }
        model.work(&mut guest, 20);
    }
    let cache = disks.place.status()["cache"].clone();
    // How many depends on how soon the destager's writes fill the page cache.
    assert!(cache["hits"].as_u64() > Some(0), "{cache}");
    guest.end().expect("ended");
    backend.ends();
    model.compare(&disks.image());
}

#[test]
fn a_disk_becomes_larger_while_its_guest_is_at_work() {
    let mut disks = Disks::new();
    let image = disks.image().display().to_string();
    let resize = |disks: &Disks, to: &str| disks.place.seawall(&["disk", &image, "--resize", to]);
    let backend = disks.serve(&[]);
    let mut guest = disks.guest(1);
    guest.ask(Op::Write(0, vec![1; 4096])).expect("written");
    assert!(matches!(guest.ask(Op::Read(SIZE, 512)), Err(Trouble::Status(1))));
    let said = resize(&disks, "3M");
    assert!(said.succeeds().out.contains("3 MiB, and its guest was notified"), "{}", said.out);
    guest.hear_of_change().expect("told");
    assert_eq!(guest.bytes(), 3 << 20);
    assert_eq!(guest.ask(Op::Read(SIZE, 512)).expect("there"), [0; 512]);
    guest.ask(Op::Write((3 << 20) - 4096, vec![2; 4096])).expect("written");
    guest.ask(Op::Flush).expect("flushed");
    resize(&disks, "2M").fails(1, &["does not become smaller"]);
    // The log holds bytes up to that size.
    drop(guest);
    backend.kill();
    kill(disks.place.daemon().expect("a daemon"));
    resize(&disks, "4M").fails(1, &["seawall recover"]);
    let next = disks.serve(&[]);
    let mut guest = disks.guest(1);
    assert_eq!(guest.bytes(), 3 << 20);
    assert_eq!(guest.ask(Op::Read((3 << 20) - 4096, 4096)).expect("there"), [2; 4096]);
    guest.end().expect("ended");
    next.ends();
    assert!(resize(&disks, "4M").succeeds().out.contains("No process serves it"));
    assert_eq!(fs::metadata(&image).expect("there").len(), 4 << 20);
    resize(&disks, "1M").fails(1, &["does not become smaller"]);
    let read_only = disks.serve(&["--read-only"]);
    resize(&disks, "5M").fails(1, &["read-only"]);
    read_only.ends();
    // After a power cut too.
    if let Some(on_a_disk) = Disks::on_a_disk() {
        disks = on_a_disk;
        let backend = disks.serve(&[]);
        let mut guest = disks.guest(1);
        let image = disks.image().display().to_string();
        disks.place.seawall(&["disk", &image, "--resize", "3M"]).succeeds();
        guest.hear_of_change().expect("told");
        disks.cut(backend);
        disks.recover();
        let backend = disks.serve(&[]);
        assert_eq!(disks.guest(1).bytes(), 3 << 20);
        backend.ends();
    }
}

/// As QEMU moves it: its memory is copied while it is at work, and the other side may write the image as soon as it goes on there.
// Holds: admin/VIRTUAL_DISK#live-migration
#[test]
fn a_guest_moves_while_it_is_at_work_and_back_again() {
    let (disks, elsewhere) = (Disks::new(), Place::new());
    let backend = disks.serve(&[]);
    let mut guest = disks.guest(2);
    assert!(guest.features() & LOG_ALL == 0, "nobody asked for that yet");
    let mut model = Model::new(11);
    model.work(&mut guest, 60);
    let (there, socket) = disks.await_guest(&elsewhere);
    let moving = guest.begin_to_move().expect("the backend marks pages");
    model.work(&mut guest, 60);
    // Answers that the guest has not seen when it stops.
    let reads: Vec<Op> = (0..8).map(|i| Op::Read(i * 65536, 65536)).collect();
    for op in &reads {
        guest.begin(1, op.clone()).expect("room");
    }
    let mut guest = guest.arrive(moving, &socket).expect("it goes on there");
    for _ in &reads {
        let done = guest.next(1).expect("answered");
        model.check(&reads[usize::from(done.slot)], &done.data);
    }
    model.work(&mut guest, 60);
    assert_eq!(
        disks.place.status()["files"].as_array().map(Vec::len),
        Some(0),
        "it is nothing of the first log's"
    );
    assert_eq!(elsewhere.status()["files"][0]["tracked"], true);
    // The first one still waits where it was.
    let moving = guest.begin_to_move().expect("the backend marks pages");
    model.work(&mut guest, 60);
    let mut guest = guest.arrive(moving, Path::new(&disks.socket())).expect("it is back");
    model.work(&mut guest, 60);
    there.ends();
    guest.end().expect("ended");
    backend.ends();
    model.compare(&disks.image());
}

// Holds: admin/VIRTUAL_DISK#live-migration
#[test]
fn a_guest_does_not_arrive_at_an_image_of_which_another_log_has_more() {
    let (disks, elsewhere) = (Disks::new(), Place::new());
    let backend = disks.serve(&[]);
    let mut guest = disks.guest(1);
    let (there, socket) = disks.await_guest(&elsewhere);
    guest.ask(Op::Write(0, vec![7; 4096])).expect("written");
    guest.ask(Op::Flush).expect("flushed");
    backend.kill();
    assert!(Guest::connect(&socket, 1).is_err(), "the image is not what the guest knows");
    let backend = disks.serve(&[]);
    guest.connect_again().expect("it goes on where it was");
    assert_eq!(guest.ask(Op::Read(0, 4096)).expect("read"), [7; 4096]);
    assert!(Guest::connect(&socket, 1).is_err(), "it is in use");
    guest.end().expect("ended");
    backend.ends();
    let mut late = Guest::connect(&socket, 1).expect("it is nobody's now");
    assert_eq!(late.ask(Op::Read(0, 4096)).expect("read"), [7; 4096]);
    late.end().expect("ended");
    there.ends();
}

#[test]
fn a_disk_that_is_read_alone_needs_no_log() {
    let disks = Disks::new();
    fs::write(disks.image(), vec![7; SIZE as usize]).expect("written");
    let backend = disks.serve(&["--read-only"]);
    let mut guest = disks.guest(1);
    assert_ne!(guest.features() & 1 << 5, 0, "the guest sees that");
    assert_eq!(guest.ask(Op::Read(4096, 512)).expect("read"), [7; 512]);
    assert!(matches!(guest.ask(Op::Write(0, vec![1; 512])), Err(Trouble::Status(1))));
    guest.ask(Op::Flush).expect("nothing to do");
    assert!(disks.place.daemon().is_none());
    backend.ends();
}

/// By its name nobody finds a disk, and beside it QEMU's tools find it in use.
// Holds: admin/VIRTUAL_DISK#what-keeps-others-from-a-stale-image
#[test]
fn qemu_refuses_an_image_that_is_served() {
    if !common::has("qemu-img") {
        return;
    }
    let disks = Disks::new();
    let backend = disks.serve(&[]);
    let mut guest = disks.guest(1);
    guest.ask(Op::Write(0, vec![1; 4096])).expect("written");
    let qemu = |program: &str, words: &[&str], image: &Path| {
        let command = Command::new(program).args(words).arg(image).output();
        common::Said::from(command.expect("QEMU's tools start"))
    };
    let aside = disks.image().with_extension("img.seawall");
    let write = ["-f", "raw", "-c", "write 0 512"];
    qemu("qemu-io", &write, &aside).fails(1, &["lock"]);
    let size = |wanted: &str| {
        let said = qemu("qemu-img", &["info", "-f", "raw"], &disks.image());
        assert!(said.succeeds().out.contains(&format!("virtual size: {wanted}")), "{}", said.out);
    };
    // The text that tells people what to type, and what happens to it if nobody reads it.
    size("1 KiB");
    qemu("qemu-io", &write, &disks.image()).succeeds();
    guest.ask(Op::Write(4096, vec![2; 4096])).expect("written");
    guest.end().expect("ended");
    backend.kill();
    disks
        .place
        .seawall(&["stop", "--pool", disks.place.pool()])
        .fails(1, &["has overwritten it", "vm.img.seawall"]);
    fs::remove_file(disks.image()).expect("removed");
    disks.place.seawall(&["stop", "--pool", disks.place.pool()]).succeeds();
    size("2 MiB");
    assert_eq!(fs::read(disks.image()).expect("read")[..8192], [[1; 4096], [2; 4096]].concat());
}

/// Whatever stands in the ring, the next guest is served.
#[test]
fn a_guest_that_talks_nonsense_harms_nobody_but_itself() {
    let disks = Disks::new();
    let backend = disks.serve(&[]);
    let mut rng = fastrand::Rng::with_seed(4);
    for _ in 0..common::rounds("SEAWALL_DISK_NONSENSE").max(40) {
        let mut guest = disks.guest(1);
        for _ in 0..20 {
            let odd = |rng: &mut fastrand::Rng| match rng.u32(..4) {
                0 => rng.u64(..),
                1 => u64::MAX - rng.u64(..64),
                _ => rng.u64(..3 << 20),
            };
            let chain: Vec<_> = (0..rng.usize(1..6))
                .map(|_| (odd(&mut rng), rng.u32(..) >> rng.u32(..32), rng.u16(..8), rng.u16(..140)))
                .collect();
            guest.begin_raw(0, rng.u16(..120), &chain);
        }
        match rng.u32(..4) {
            0 => guest.ring(0).offer(60_000),
            1 => guest.ring(0).set_available(rng.u16(..)),
            _ => {}
        }
        guest.kick(0);
        let _ = guest.next_within(0, Duration::from_millis(5));
    }
    let mut guest = disks.guest(2);
    guest.ask(Op::Write(0, vec![9; 512])).expect("written");
    assert_eq!(guest.ask(Op::Read(0, 512)).expect("read"), [9; 512]);
    backend.ends();
}

#[test]
fn a_limit_is_kept() {
    let disks = Disks::new();
    let backend: Backend = disks.serve(&["--iops", "200"]);
    let mut guest = disks.guest(1);
    let begin = std::time::Instant::now();
    for i in 0..100 {
        guest.ask(Op::Write(i * 512, vec![1; 512])).expect("written");
    }
    let took = begin.elapsed().as_millis();
    assert!((350..5000).contains(&took), "100 requests at 200 a second took {took} ms");
    backend.ends();
}
