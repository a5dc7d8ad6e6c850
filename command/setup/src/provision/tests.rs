use std::path::PathBuf;

use super::*;
use crate::owner::Owner;
use crate::plan::{Act, carry_out, record, undo};
use crate::testing::Bench;

const ND: &str = "/sys/bus/nd/devices";

/// An NVDIMM of 512 MiB without a namespace, a disk, a CXL device of each kind.
fn bench() -> Bench {
    let bench = Bench::new(&[]);
    let files = [
        (format!("{ND}/region0/size"), "536870912"),
        (format!("{ND}/region0/available_size"), "536870912"),
        (format!("{ND}/region0/mappings"), "1"),
        (format!("{ND}/region0/persistence_domain"), "memory_controller"),
        (format!("{ND}/region0/namespace_seed"), "namespace0.0"),
        ("/sys/block/nvme1n1/size".into(), "2048000"),
        ("/sys/block/nvme1n1/dev".into(), "259:3"),
        ("/sys/bus/cxl/devices/mem0/pmem/size".into(), "0x10000000"),
        ("/sys/bus/cxl/devices/mem0/ram/size".into(), "0"),
        ("/sys/bus/cxl/devices/mem1/ram/size".into(), "0x20000000"),
        ("/sys/bus/cxl/devices/decoder0.0/cap_pmem".into(), "1"),
        ("/sys/bus/cxl/devices/decoder0.0/cap_ram".into(), "0"),
        ("/sys/bus/cxl/devices/decoder0.0/create_pmem_region".into(), "region4"),
        ("/sys/bus/cxl/devices/decoder0.1/cap_ram".into(), "1"),
        ("/sys/bus/cxl/devices/decoder0.1/create_ram_region".into(), "region5"),
        ("/sys/bus/cxl/devices/endpoint2/x".into(), ""),
        ("/sys/bus/cxl/devices/endpoint3/x".into(), ""),
        // One is in a region already.
        ("/sys/bus/cxl/devices/decoder3.0/mode".into(), "ram"),
        ("/sys/bus/cxl/devices/decoder3.1/mode".into(), "none"),
        ("/sys/bus/cxl/devices/decoder2.0/mode".into(), "none"),
        ("/proc/sys/kernel/osrelease".into(), "6.1.0-1-amd64"),
    ];
    files.iter().for_each(|(path, text)| bench.write(path, text));
    bench.link("/sys/bus/cxl/devices/endpoint2/uport", "../mem0");
    bench.link("/sys/bus/cxl/devices/endpoint3/uport", "../mem1");
    bench.device("nvme1n1");
    bench
}

fn wish(bench: &Bench, mount: Option<&str>) -> Wish {
    Wish {
        mount: mount.map(PathBuf::from),
        owner: Some(Owner::parse("postgres", bench).expect("known")),
        ..Wish::default()
    }
}

/// Mounting and probing are seen: the file system of this plan is mounted there.
fn mounts(bench: &Bench, plan: &Plan, point: &str, device: &str) {
    let line = format!("36 35 259:9 / {point} rw - ext4 /dev/{device} rw\n");
    bench.makes(&format!("mount {point}"), "/proc/self/mountinfo", &line);
    bench.says(
        &format!("blkid --probe --output export /dev/{device}"),
        Ok(format!("UUID={}\n", mounted_uuid(plan))),
    );
}

fn drawn(bench: &Bench, source: &str, wish: &Wish) -> Result<Plan, Error> {
    plan(bench, &bench.machine(), &Source::parse(source)?, wish)
}

/// The text, with UUIDs taken out.
fn shown(plan: &Plan) -> String {
    let text = plan.text();
    let is_uuid = |word: &str| {
        let dashes = [8, 13, 18, 23];
        let fits =
            |(at, c): (usize, char)| if dashes.contains(&at) { c == '-' } else { c.is_ascii_hexdigit() };
        word.char_indices().all(fits)
    };
    let (mut found, mut rest) = (String::new(), text.as_str());
    while let Some(first) = rest.chars().next() {
        let one = rest.get(..36).is_some_and(is_uuid);
        found += if one { "UUID" } else { &rest[..first.len_utf8()] };
        rest = &rest[if one { 36 } else { first.len_utf8() }..];
    }
    found
}

#[test]
fn a_region_becomes_a_dax_mount_with_a_pool() {
    let bench = bench();
    let wish = Wish { pool: Some(Some(64 << 20)), ..wish(&bench, Some("/mnt/pmem")) };
    let plan = drawn(&bench, "region0", &wish).expect("a plan");
    let text = shown(&plan);
    for line in [
        "ndctl create-namespace --region=region0 --mode=fsdax --name=region0 --uuid=UUID --map=dev",
        "mkfs.ext4 -q -F -U UUID -L region0 -b 4096 -E stride=512,stripe_width=512 /dev/pmem0",
        "echo 'UUID=UUID /mnt/pmem ext4 dax=always,noatime,nofail 0 2' >> /etc/fstab",
        "chown postgres:postgres /mnt/pmem",
        "setpriv --init-groups --reuid postgres --regid postgres seawall init /mnt/pmem/region0.pool --size 67108864",
        "data that was flushed out of the processors' caches survives a power cut (ADR)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn where_systemd_and_udev_run_they_are_used() {
    let bench = bench();
    bench.write("/run/systemd/system/x", "");
    bench.write("/run/udev/control", "");
    let text = shown(&drawn(&bench, "region0", &wish(&bench, Some("/srv/my-data"))).expect("a plan"));
    assert!(text.contains(r"cat > '/etc/systemd/system/srv-my\x2ddata.mount'"), "{text}");
    assert!(text.contains("What=/dev/disk/by-uuid/UUID"), "{text}");
    assert!(text.contains(r"systemctl enable --now 'srv-my\x2ddata.mount'"), "{text}");
    let pool = Wish { pool: Some(None), ..wish(&bench, None) };
    let text = shown(&drawn(&bench, "/dev/nvme1n1", &pool).expect("a plan"));
    assert!(text.contains("until [ -e /dev/disk/by-partuuid/UUID ]"), "{text}");
    assert!(text.contains(r#"ENV{ID_PART_ENTRY_UUID}=="UUID", OWNER="postgres""#), "{text}");
    assert!(
        text.contains("setpriv --init-groups --reuid postgres --regid postgres seawall init --block /dev/disk/by-partuuid/UUID"),
        "{text}"
    );
    let devdax = Wish { mode: Some(Mode::Devdax), ..wish(&bench, None) };
    let text = shown(&drawn(&bench, "region0", &devdax).expect("a plan"));
    assert!(
        text.contains(r#"SUBSYSTEM=="dax", KERNEL=="dax0.0", KERNELS=="region0", OWNER="postgres""#),
        "{text}"
    );
}

#[test]
fn modules_without_labels_are_given_some_and_lose_them_again() {
    let bench = bench();
    bench.write(&format!("{ND}/region0/nstype"), "4");
    bench.write(&format!("{ND}/region0/mapping0"), "nmem0,0,536870912,0");
    bench.write(&format!("{ND}/nmem0/available_slots"), "8");
    bench.write(&format!("{ND}/namespace0.0/size"), "536870912");
    bench.write(&format!("{ND}/namespace0.0/mode"), "raw");
    bench.write(&format!("{ND}/namespace0.0/block/pmem0/x"), "");
    bench.device("pmem0");
    let plan = drawn(&bench, "region0", &wish(&bench, Some("/mnt/pmem"))).expect("a plan");
    let begin: Vec<String> = plan.steps[..3].iter().flat_map(|step| step.act.lines()).collect();
    assert_eq!(
        begin,
        ["ndctl disable-region region0", "ndctl init-labels nmem0", "ndctl enable-region region0"]
    );
    let back: Vec<String> =
        plan.steps[..3].iter().rev().flat_map(|step| step.undo.iter().flat_map(Act::lines)).collect();
    assert_eq!(
        back,
        ["ndctl disable-region region0", "ndctl zero-labels nmem0", "ndctl enable-region region0"]
    );
    bench.write("/dev/pmem0", &("\0".repeat(99) + "somebody's"));
    let refused = carry_out(&mut plan.clone(), &bench, |_, _| ()).expect_err("it holds something");
    assert!(refused.to_string().contains("at byte 99"), "{refused}");
}

#[test]
fn each_mode_has_its_device() {
    let bench = bench();
    let with = |mode, mount| Wish { mode: Some(mode), owner: None, ..wish(&bench, mount) };
    let text = shown(&drawn(&bench, "region0", &with(Mode::Sector, Some("/mnt/x"))).expect("a plan"));
    assert!(
        text.contains("--mode=sector") && text.contains("/dev/pmem0s") && !text.contains("dax="),
        "{text}"
    );
    assert!(!text.contains("--map=dev"), "{text}");
    let text = shown(&drawn(&bench, "region0", &with(Mode::Memory, None)).expect("a plan"));
    assert!(text.contains("daxctl reconfigure-device --force --mode=system-ram dax0.0"), "{text}");
    assert!(text.contains("nvdimm.uuid = UUID") && text.contains("movable = true"), "{text}");
    drawn(&bench, "region0", &with(Mode::Memory, Some("/mnt/x"))).expect_err("memory holds no files");
    drawn(&bench, "region0", &with(Mode::Devdax, Some("/mnt/x"))).expect_err("devdax neither");
}

#[test]
fn cxl_memory_becomes_a_region_first() {
    let bench = bench();
    let text = shown(&drawn(&bench, "mem0", &wish(&bench, Some("/mnt/cxl"))).expect("a plan"));
    assert!(text.contains("cxl create-region -m -d decoder0.0 -w 1 -t pmem mem0"), "{text}");
    // region0 is there already.
    assert!(text.contains("ndctl create-namespace --region=region1 --mode=fsdax"), "{text}");
    assert!(text.contains("mkfs.ext4") && text.contains("/dev/pmem1"), "{text}");
    let memory = Wish { mode: Some(Mode::Memory), ..Wish::default() };
    let text = shown(&drawn(&bench, "mem1", &memory).expect("a plan"));
    assert!(text.contains("echo region5 > /sys/bus/cxl/devices/decoder0.1/create_ram_region"), "{text}");
    assert!(text.contains("echo 0x20000000 > /sys/bus/cxl/devices/decoder3.1/dpa_size"), "{text}");
    assert!(text.contains("echo decoder3.1 > /sys/bus/cxl/devices/region5/target0"), "{text}");
    assert!(text.contains("daxctl reconfigure-device --force --mode=system-ram dax5.0"), "{text}");
    drawn(&bench, "mem1", &wish(&bench, Some("/mnt/x"))).expect_err("volatile memory holds no files");
    drawn(&bench, "mem0", &memory).expect_err("no volatile part");
}

#[test]
fn what_holds_data_is_refused() {
    let bench = bench();
    let pool = Wish { pool: Some(None), ..Wish::default() };
    let refused = |bench: &Bench| {
        let mut plan = drawn(bench, "/dev/nvme1n1", &pool).expect("a plan");
        let refused = carry_out(&mut plan, bench, |_, _| ()).expect_err("refused").to_string();
        assert!(bench.ran.borrow().is_empty(), "{:?}", bench.ran);
        refused
    };
    bench.says("blkid", Ok("TYPE=crypto_LUKS\nUUID=12\n".into()));
    assert!(refused(&bench).contains("holds crypto_LUKS (12)"));
    bench.says("blkid", Ok("PTTYPE=gpt\n".into()));
    assert!(refused(&bench).contains("a partition table (gpt)"));
    bench.says("blkid", Err(String::new()));
    bench.write("/dev/nvme1n1", &("\0".repeat(5000) + "somebody's"));
    assert!(refused(&bench).contains("something that no tool knows, at byte 5000"));
    bench.device("nvme1n1");
    bench.write("/proc/self/mountinfo", "36 35 259:3 / /data rw - ext4 /dev/nvme1n1 rw\n");
    assert!(refused(&bench).contains("is mounted on /data"));
    bench.write("/proc/self/mountinfo", "");
    bench.write("/proc/swaps", "Filename Type\n/dev/nvme1n1 partition 1 0 -2\n");
    assert!(refused(&bench).contains("used for swap"));
    bench.write("/proc/swaps", "");
    bench.write("/sys/block/nvme1n1/holders/dm-0/x", "");
    assert!(refused(&bench).contains("dm-0 is made of"));
}

#[test]
fn a_namespace_of_somebody_else_in_between_is_not_written_to() {
    let bench = bench();
    bench.device("pmem0");
    bench.makes("ndctl create", "/sys/bus/nd/devices/namespace0.0/uuid", "another");
    let mut plan = drawn(&bench, "region0", &wish(&bench, Some("/mnt/pmem"))).expect("a plan");
    let refused = carry_out(&mut plan, &bench, |_, _| ()).expect_err("another one");
    assert!(refused.to_string().contains("is another one"), "{refused}");
    assert!(!bench.ran.borrow().iter().any(|line| line.starts_with("mkfs")), "{:?}", bench.ran);
}

#[test]
fn a_mount_that_is_not_accessed_directly_fails_the_plan_and_is_undone() {
    let bench = bench();
    bench.grants(false);
    let mut plan = drawn(&bench, "region0", &wish(&bench, Some("/mnt/pmem"))).expect("a plan");
    let uuid = plan.steps.iter().find_map(|step| match &step.needs[..] {
        [Check::Namespace { uuid, .. }] => Some(uuid.clone()),
        _ => None,
    });
    bench.device("pmem0");
    bench.makes("ndctl create", "/sys/bus/nd/devices/namespace0.0/uuid", &uuid.expect("a namespace"));
    mounts(&bench, &plan, "/mnt/pmem", "pmem0");
    let before = bench.files();
    let failed = carry_out(&mut plan, &bench, |_, _| ()).expect_err("no DAX");
    assert!(failed.to_string().contains("gets no MAP_SYNC"), "{failed}");
    let mut plan = record::load(&bench, "region0").expect("a record");
    undo(&mut plan, &bench, |_, _| ()).expect("undone");
    assert_eq!(
        bench.ran.borrow().last().map(String::as_str),
        Some("ndctl destroy-namespace --force namespace0.0")
    );
    let mut after = bench.files();
    after.remove("etc/fstab");
    assert_eq!(after, before);
}

#[test]
fn a_disk_that_is_undone_is_as_empty_as_it_was() {
    let bench = bench();
    bench.makes("sfdisk", "/dev/nvme1n1p1", "\0");
    let mut plan = drawn(&bench, "/dev/nvme1n1", &wish(&bench, Some("/data"))).expect("a plan");
    carry_out(&mut plan, &bench, |_, _| ()).expect("carried out");
    let uuids = format!("PART_ENTRY_UUID={}\nUUID={}\n", partition_uuid(&plan), mounted_uuid(&plan));
    bench.says("blkid", Ok(uuids));
    undo(&mut plan, &bench, |_, _| ()).expect_err("it is not mounted, and may hold something");
    bench.write("/proc/self/mountinfo", "36 35 259:9 / /data rw - ext4 /dev/nvme1n1p1 rw\n");
    bench.write("/data/somebodys", "");
    undo(&mut plan, &bench, |_, _| ()).expect_err("it holds something");
    bench.remove("/data/somebodys");
    bench.ran.borrow_mut().clear();
    undo(&mut plan, &bench, |_, _| ()).expect("undone");
    let ran = bench.ran.borrow();
    let last: Vec<&str> = ran.iter().rev().take(4).map(String::as_str).collect();
    let wiped = |device: &str| format!("wipefs --all --quiet {device}");
    let zeroed = |device: &str| format!("dd if=/dev/zero of={device} bs=1M count=4 conv=fsync status=none");
    let (disk, part) = ("/dev/nvme1n1", "/dev/nvme1n1p1");
    assert_eq!(last, [zeroed(disk), wiped(disk), zeroed(part), wiped(part)]);
}

/// After a restart the record's name may be another disk's.
#[test]
fn a_disk_that_is_another_one_by_now_is_not_emptied() {
    let bench = bench();
    bench.makes("sfdisk", "/dev/nvme1n1p1", "\0");
    let mut plan = drawn(&bench, "/dev/nvme1n1", &wish(&bench, Some("/data"))).expect("a plan");
    carry_out(&mut plan, &bench, |_, _| ()).expect("carried out");
    bench.says("blkid", Ok("PART_ENTRY_UUID=another\n".into()));
    let commands = bench.ran.borrow().len();
    undo(&mut plan, &bench, |_, _| ()).expect_err("another one");
    assert_eq!(bench.ran.borrow().len(), commands);
}

#[test]
fn what_is_free_is_listed_with_what_to_type() {
    let bench = bench();
    let found = free(&bench, &bench.machine());
    let sources: Vec<_> = found.iter().map(|free| free.source.as_str()).collect();
    assert_eq!(sources, ["region0", "mem0", "mem1", "/dev/nvme1n1"]);
    assert!(found.iter().all(|free| free.example.contains(&free.source)), "{found:?}");
    bench.says("blkid", Ok("TYPE=ext4\n".into()));
    assert!(
        free(&bench, &bench.machine()).iter().all(|free| free.source != "/dev/nvme1n1"),
        "it holds something"
    );
}

#[test]
fn modules_without_a_region_are_named() {
    let bench = Bench::new(&[]);
    bench.write(&format!("{ND}/nmem0/nfit/flags"), "");
    let found = free(&bench, &bench.machine());
    assert_eq!(found.len(), 1);
    assert!(found[0].example.starts_with("ipmctl create -goal"), "{found:?}");
}

#[test]
fn what_is_not_possible_says_why() {
    let bench = bench();
    let said = |source: &str, wish: &Wish| drawn(&bench, source, wish).expect_err("impossible").to_string();
    assert!(said("region7", &Wish::default()).contains("there is no region7"));
    assert!(said("/dev/nvme1n1", &Wish::default()).contains("say what /dev/nvme1n1 is for"));
    let pool = Wish { pool: Some(None), ..Wish::default() };
    assert!(said("region0", &pool).contains("a pool in persistent memory is a file"));
    bench.write("/sys/bus/nd/devices/region0/nstype", "4");
    assert!(said("region0", &Wish::default()).contains("seawall provision namespace0.0"));
    bench.write("/sys/bus/nd/devices/region0/nstype", "5");
    let taken = Wish { mount: Some("/mnt/full".into()), ..Wish::default() };
    bench.write("/mnt/full/somebodys", "");
    let mut plan = drawn(&bench, "region0", &taken).expect("a plan");
    assert!(
        carry_out(&mut plan, &bench, |_, _| ()).expect_err("full").to_string().contains("holds somebodys")
    );
}

fn mounted_uuid(plan: &Plan) -> String {
    let uuid = plan.steps.iter().find_map(|step| match &step.undo_if {
        Some(Check::Mounted { uuid, .. }) => Some(uuid.clone()),
        _ => None,
    });
    uuid.expect("a mount")
}

fn partition_uuid(plan: &Plan) -> String {
    match &plan.steps[0].undo_if {
        Some(Check::Probed { value, .. }) => value.clone(),
        other => panic!("{other:?}"),
    }
}
