use super::status::Verdict;
use std::path::{Path, PathBuf};

use super::*;
use crate::error::Error;
use crate::plan::{Check, Plan, State, carry_out, record, undo};
use crate::testing::Bench;

/// Six disks at three controllers.
fn bench() -> Bench {
    let bench = Bench::new(&[]);
    for (n, name) in ["sdb", "sdc", "sdd", "sde", "sdf", "sdg"].into_iter().enumerate() {
        disk(&bench, name, n / 2);
    }
    bench.write("/etc/mdadm/mdadm.conf", "HOMEHOST <system>\n");
    bench
}

fn disk(bench: &Bench, name: &str, controller: usize) {
    let at = format!("/sys/devices/pci0000:00/0000:00:{controller:02x}.0/{name}");
    bench.write(&format!("{at}/size"), "2048000");
    bench.write(&format!("{at}/dev"), "8:16");
    bench.write(&format!("{at}/device/serial"), &format!("serial-{name}"));
    bench.link(
        &format!("/sys/block/{name}"),
        &format!("../devices/pci0000:00/0000:00:{controller:02x}.0/{name}"),
    );
    bench.device(name);
}

fn wish(disks: &str) -> Wish {
    Wish {
        name: "pg".into(),
        by: By::Md,
        redundancy: Redundancy::Normal,
        unit: 1 << 20,
        disks: disks.split(' ').map(|name| (PathBuf::from("/dev").join(name), None)).collect(),
        redo: Vec::new(),
        mount: "/data".into(),
        redo_mount: None,
        file_system: FileSystem::Xfs,
        owner: None,
        fstab: true,
        measured: "/nowhere".into(),
    }
}

fn drawn(bench: &Bench, wish: &Wish) -> Result<Plan, Error> {
    plan(bench, &bench.machine(), wish)
}

/// The array as md shows it, made of these disks in this order.
fn array(bench: &Bench, disks: &[&str]) {
    bench.write("/dev/md127", "");
    bench.link("/dev/md/pg", "../md127");
    let files =
        [("raid_disks", disks.len().to_string()), ("layout", "258".into()), ("level", "raid10".into())];
    let more =
        [("sync_action", "idle"), ("degraded", "0"), ("array_state", "clean"), ("sync_completed", "none")];
    for (file, text) in files.iter().map(|(f, t)| (*f, t.as_str())).chain(more) {
        bench.write(&format!("/sys/block/md127/md/{file}"), text);
    }
    for (place, name) in disks.iter().enumerate() {
        bench.write(&format!("/sys/block/md127/md/dev-{name}/slot"), &place.to_string());
        bench.write(&format!("/sys/block/md127/md/dev-{name}/state"), "in_sync");
    }
}

#[test]
fn copies_lie_behind_different_controllers() {
    let bench = bench();
    let text = drawn(&bench, &wish("sdb sdc sdd sde")).expect("a plan").text();
    assert!(
        text.contains("--level=10 --layout=n2 --bitmap=internal /dev/sdb /dev/sdd /dev/sdc /dev/sde"),
        "{text}"
    );
    assert!(text.contains("--chunk=1024 --raid-devices=4"), "{text}");
    assert!(text.contains("mkfs.xfs -q -L pg -d su=1048576,sw=2"), "{text}");
    assert!(text.contains("/dev/sdb (0000:00:00.0) = /dev/sdd (0000:00:01.0)"), "{text}");
    assert!(text.contains("has not been measured here"), "{text}");
    let high = Wish { redundancy: Redundancy::High, ..wish("sdb sdc sdd sde sdf sdg") };
    let text = drawn(&bench, &high).expect("a plan").text();
    assert!(
        text.contains("--layout=n3 --bitmap=internal /dev/sdb /dev/sdd /dev/sdf /dev/sdc /dev/sde /dev/sdg"),
        "{text}"
    );
    let external = Wish { redundancy: Redundancy::External, ..wish("sdb sdc") };
    let text = drawn(&bench, &external).expect("a plan").text();
    assert!(text.contains("--level=0 /dev/sdb /dev/sdc") && !text.contains("bitmap"), "{text}");
}

#[test]
fn where_systemd_runs_each_layout_has_a_unit_of_its_own() {
    let bench = bench();
    bench.write("/run/systemd/system/x", "");
    let text = drawn(&bench, &Wish { fstab: false, ..wish("sdb sdd") }).expect("a plan").text();
    assert!(text.contains("cat > /etc/systemd/system/seawall-layout-pg.service"), "{text}");
    assert!(text.contains("ExecStart=/usr/bin/seawall layout guard pg"), "{text}");
    assert!(text.contains("What=/dev/disk/by-uuid/"), "{text}");
}

#[test]
fn what_cannot_be_apart_is_refused() {
    let bench = bench();
    let said = |wish: &Wish| drawn(&bench, wish).expect_err("refused").to_string();
    assert!(said(&wish("sdb sdc")).contains("no group may hold two of 2 copies"));
    assert!(said(&wish("sdb sdd sdf")).contains("a multiple of 2"));
    assert!(said(&wish("sdb sdb")).contains("named twice"));
    assert!(said(&Wish { unit: 3 << 20, ..wish("sdb sdd") }).contains("power of two"));
    assert!(
        said(&Wish { by: By::Btrfs, ..wish("sdb sdc sdd sde") })
            .contains("each disk must be a group of its own")
    );
    let mut half = wish("sdb sdd");
    half.disks[0].1 = Some("left".into());
    assert!(said(&half).contains("name them for all"));
}

#[test]
fn redo_on_disks_of_its_own_says_what_is_under_both() {
    let bench = bench();
    let apart = Wish { redo: vec![("/dev/sdf".into(), None), ("/dev/sde".into(), None)], ..wish("sdb sdd") };
    let text = drawn(&bench, &apart).expect("a plan").text();
    assert!(text.contains("mdadm --create /dev/md/pg-redo"), "{text}");
    assert!(text.contains("group 0000:00:01.0 is under both the redo log and the data"), "{text}");
    assert!(text.contains("/data-redo"), "{text}");
    assert!(
        drawn(&bench, &wish("sdb sdd"))
            .expect("a plan")
            .text()
            .contains("a fault that takes one takes the other")
    );
}

#[test]
fn status_proves_that_copies_are_apart_or_names_what_is_not() {
    let bench = bench();
    let mut plan = drawn(&bench, &wish("sdb sdc sdd sde")).expect("a plan");
    bench.makes("mdadm --create", "/dev/md/pg", "");
    carry_out(&mut plan, &bench, |_, _| ()).expect("carried out");
    bench.remove("/dev/md/pg");
    array(&bench, &["sdb", "sdd", "sdc", "sde"]);
    let seen = status::of(&bench, &plan).expect("a status");
    assert_eq!(seen.verdict, Verdict::Sound, "{seen:#?}");
    assert!(seen.strangers.contains("can write to sdb, sdd, sdc, sde"), "{}", seen.strangers);
    ["sdb", "sdc", "sdd", "sde"].iter().for_each(|name| bench.write(&format!("/sys/block/{name}/ro"), "1"));
    let seen = status::of(&bench, &plan).expect("a status");
    assert!(seen.strangers.contains("the kernel refuses"), "{}", seen.strangers);
    assert!(seen.sets[0].proof[0].contains("all 2 sets of 2 places"), "{seen:#?}");
    // Somebody has changed places.
    bench.write("/sys/block/md127/md/dev-sdd/slot", "2");
    bench.write("/sys/block/md127/md/dev-sdc/slot", "1");
    let seen = status::of(&bench, &plan).expect("a status");
    assert_eq!(seen.verdict, Verdict::Broken);
    assert!(seen.sets[0].proof[0].contains("group 0000:00:00.0 holds two copies"), "{seen:#?}");
}

#[test]
fn a_disk_that_is_lost_and_what_takes_its_place_are_seen() {
    let bench = bench();
    let plan = drawn(&bench, &wish("sdb sdc sdd sde")).expect("a plan");
    array(&bench, &["sdb", "sdd", "sdc", "sde"]);
    bench.write("/sys/block/md127/md/degraded", "1");
    bench.write("/sys/block/md127/md/dev-sdd/slot", "none");
    bench.write("/sys/block/md127/md/dev-sdd/state", "faulty");
    bench.write("/sys/block/md127/md/sync_action", "recover");
    bench.write("/sys/block/md127/md/sync_completed", "512 / 2048");
    let seen = status::of(&bench, &plan).expect("a status");
    assert_eq!(seen.verdict, Verdict::Reduced);
    assert!(seen.sets[0].state.contains("recover 25 %"), "{}", seen.sets[0].state);
    assert_eq!(seen.sets[0].members[1].state, "missing");
}

/// md has not noticed yet: nobody has written to it.
#[test]
fn a_disk_that_was_torn_out_is_missing_at_once() {
    let bench = bench();
    let plan = drawn(&bench, &wish("sdb sdc sdd sde")).expect("a plan");
    array(&bench, &["sdb", "sdd", "sdc", "sde"]);
    bench.remove("/sys/block/sdd");
    let seen = status::of(&bench, &plan).expect("a status");
    assert_eq!(
        (seen.verdict, seen.sets[0].members[1].state.as_str()),
        (Verdict::Reduced, "missing"),
        "{seen:#?}"
    );
}

#[test]
fn a_replacement_keeps_copies_apart_and_the_record_follows() {
    let bench = bench();
    let mut plan = drawn(&bench, &wish("sdb sdc sdd sde")).expect("a plan");
    plan.steps.iter_mut().for_each(|step| step.state = State::Done);
    record::save(&bench, &plan).expect("a record");
    array(&bench, &["sdb", "sdd", "sdc", "sde"]);
    let machine = bench.machine();
    let new = |group: &str| (PathBuf::from("/dev/sdf"), Some(group.to_owned()));
    let low = Power::new(1).expect("a power");
    let old = Path::new("/dev/sdd");
    let Err(refused) = replace(&bench, &machine, &plan, old, new("0000:00:00.0"), low) else {
        panic!("apart?")
    };
    assert!(refused.to_string().contains("both would fail together"), "{refused}");
    let mut change = replace(&bench, &machine, &plan, old, new("0000:00:02.0"), low).expect("a change");
    let text = change.plan.text();
    assert!(text.contains("echo 4096 > /sys/block/md127/md/sync_speed_max"), "{text}");
    assert!(text.contains("mdadm /dev/md/pg --replace /dev/sdd --with /dev/sdf"), "{text}");
    change.carry_out(&bench, |_, _| ()).expect("carried out");
    let after = record::load(&bench, "pg").expect("a record");
    let devices: Vec<_> =
        Notes::of(&after).expect("notes").sets[0].members.iter().map(|m| m.device.clone()).collect();
    assert_eq!(devices, ["/dev/sdb", "/dev/sdf", "/dev/sdc", "/dev/sde"].map(PathBuf::from));
    let undone = after.steps[0].undo.as_ref().expect("undone").lines().join("\n");
    assert!(undone.contains("mdadm --stop /dev/md/pg\n") && undone.contains("/dev/sdf"), "{undone}");
    assert!(!undone.contains("/dev/sdd"), "it is no longer ours: {undone}");
}

#[test]
fn a_disk_that_is_gone_is_replaced_too() {
    let bench = bench();
    let plan = drawn(&bench, &wish("sdb sdc sdd sde")).expect("a plan");
    array(&bench, &["sdb", "sdd", "sdc", "sde"]);
    bench.write("/sys/block/md127/md/dev-sdd/state", "faulty");
    bench.write("/sys/block/md127/md/dev-sdd/slot", "none");
    bench.remove("/sys/block/sdd");
    bench.remove("/dev/sdd");
    let power = Power::new(11).expect("a power");
    let change =
        replace(&bench, &bench.machine(), &plan, Path::new("/dev/sdd"), ("/dev/sdf".into(), None), power);
    let text = change.expect("a change").plan.text();
    assert!(text.contains("--remove detached") && text.contains("mdadm /dev/md/pg --add /dev/sdf"), "{text}");
}

#[test]
fn what_is_undone_empties_only_disks_that_are_its_own() {
    let bench = bench();
    let mut plan = drawn(&bench, &wish("sdb sdd")).expect("a plan");
    bench.makes("mdadm --create", "/dev/md/pg", "");
    carry_out(&mut plan, &bench, |_, _| ()).expect("carried out");
    let commands = bench.ran.borrow().len();
    bench.says("blkid", Ok("TYPE=ext4\nUUID=somebody's\n".into()));
    undo(&mut plan, &bench, |_, _| ()).expect_err("another disk has that name now");
    assert_eq!(bench.ran.borrow().len(), commands);
    let uuid = Notes::of(&plan).expect("notes").sets[0].uuid.clone();
    bench.says("blkid", Ok(format!("TYPE=linux_raid_member\nUUID={uuid}\n")));
    undo(&mut plan, &bench, |_, _| ()).expect_err("it is not mounted, and may hold something");
    let mounted = plan.steps.iter().find_map(|step| match &step.undo_if {
        Some(Check::Mounted { uuid, .. }) => Some(uuid.clone()),
        _ => None,
    });
    bench.says(
        "blkid --probe --output export /dev/md/pg",
        Ok(format!("UUID={}\n", mounted.expect("a mount"))),
    );
    bench.write("/proc/self/mountinfo", "36 35 9:127 / /data rw - xfs /dev/md/pg rw\n");
    undo(&mut plan, &bench, |_, _| ()).expect("undone");
    assert_eq!(bench.text("/etc/mdadm/mdadm.conf").as_deref(), Some("HOMEHOST <system>\n"));
}

#[test]
fn disks_are_added_a_set_at_a_time() {
    let bench = bench();
    let plan = drawn(&bench, &wish("sdb sdd")).expect("a plan");
    array(&bench, &["sdb", "sdd"]);
    let (machine, power) = (bench.machine(), Power::new(3).expect("a power"));
    let disks = |names: &[&str]| -> Vec<(PathBuf, Option<String>)> {
        names.iter().map(|name| (PathBuf::from("/dev").join(name), None)).collect()
    };
    let change = add(&bench, &machine, &plan, &disks(&["sdc", "sde"]), false, power).expect("a change");
    let text = change.plan.text();
    assert!(text.contains("mdadm /dev/md/pg --add /dev/sdc /dev/sde"), "{text}");
    assert!(text.contains("mdadm --grow /dev/md/pg --raid-devices=4"), "{text}");
    assert!(add(&bench, &machine, &plan, &disks(&["sdc"]), false, power).is_err());
    assert!(add(&bench, &machine, &plan, &disks(&["sdf", "sdg"]), false, power).is_err(), "one controller");
    let Err(refused) = drop(&bench, &plan, Path::new("/dev/sdb"), false) else { panic!("dropped") };
    assert!(refused.to_string().contains("cannot become smaller"), "{refused}");
}

#[test]
fn btrfs_adds_drops_and_replaces() {
    let bench = bench();
    let three = Wish { by: By::Btrfs, ..wish("sdb sdd sdf") };
    drawn(&bench, &three).expect("it takes any number");
    let mut by = Wish { by: By::Btrfs, ..wish("sdb sdd sdf sdg") };
    for (n, (_, group)) in by.disks.iter_mut().enumerate() {
        *group = Some(format!("bay-{n}"));
    }
    let plan = drawn(&bench, &by).expect("a plan");
    let text = plan.text();
    assert!(text.contains("--data raid1 --metadata raid1 /dev/sdb /dev/sdd /dev/sdf /dev/sdg"), "{text}");
    let change = drop(&bench, &plan, Path::new("/dev/sdf"), false).expect("a change");
    assert!(change.plan.text().contains("btrfs device remove /dev/sdf /data"), "{}", change.plan.text());
    let new = ("/dev/sdc".into(), Some("bay-9".into()));
    let power = Power::new(5).expect("a power");
    let change =
        replace(&bench, &bench.machine(), &plan, Path::new("/dev/sdf"), new, power).expect("a change");
    assert!(
        change.plan.text().contains("btrfs replace start /dev/sdf /dev/sdc /data"),
        "{}",
        change.plan.text()
    );
}
