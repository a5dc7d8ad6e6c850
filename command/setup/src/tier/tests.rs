use super::*;
use crate::plan::{carry_out, undo};
use crate::testing::Bench;
use nodes::Nodes;
use policy::Policy;

/// DRAM with processors, DRAM without, persistent memory that became memory.
fn bench() -> Bench {
    let bench = Bench::new(&[
        ("/sys/devices/system/node/online", "0-2"),
        ("/sys/devices/system/node/node0/cpulist", "0-1"),
        ("/sys/devices/system/node/node0/distance", "10 20 40"),
        ("/sys/devices/system/node/node1/distance", "20 10 40"),
        ("/sys/devices/system/node/node2/distance", "40 40 10"),
        ("/sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0-1"),
        ("/sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "2"),
        ("/sys/kernel/mm/numa/demotion_enabled", "false"),
        ("/proc/sys/kernel/numa_balancing", "1"),
        ("/sys/bus/dax/drivers/kmem/x", ""),
        ("/sys/devices/LNXSYSTM:00/ndbus0/region0/dax0.0/dax0.0/target_node", "2"),
        ("/sys/devices/LNXSYSTM:00/ndbus0/region0/dax0.0/dax0.0/size", "4294967296"),
    ]);
    for (node, total) in [(0, 1024), (1, 512), (2, 4096)] {
        let text = format!("Node {node} MemTotal:  {} kB\nNode {node} MemFree:   1024 kB\n", total << 10);
        bench.write(&format!("/sys/devices/system/node/node{node}/meminfo"), &text);
    }
    bench.link("/sys/bus/dax/devices/dax0.0", "../../../devices/LNXSYSTM:00/ndbus0/region0/dax0.0/dax0.0");
    bench.link("/sys/devices/LNXSYSTM:00/ndbus0/region0/dax0.0/dax0.0/driver", "/sys/bus/dax/drivers/kmem");
    bench
}

#[test]
fn nodes_are_told_by_what_they_are_made_of() {
    let nodes = Nodes::read(&bench());
    let seen: Vec<_> =
        nodes.nodes.iter().map(|node| (node.number, node.bytes >> 20, node.distance, node.tier)).collect();
    assert_eq!(
        seen,
        [(0, 1024, Some(10), Some(4)), (1, 512, Some(20), Some(4)), (2, 4096, Some(40), Some(22))]
    );
    assert_eq!(nodes.nodes[2].made_of, "persistent memory, as memory (dax0.0)");
    assert_eq!((nodes.fast(), nodes.slow()), (vec![0, 1], vec![2]));
    assert_eq!((nodes.promotes, nodes.demotes), (false, Some(false)));
}

#[test]
fn the_kernel_s_part_is_set_up_and_taken_back() {
    let bench = bench();
    let before = bench.files();
    let mut plan = plan(&bench).expect("a plan");
    carry_out(&mut plan, &bench, |_, _| ()).expect("carried out");
    // The other bit is somebody else's.
    assert_eq!(bench.text("/proc/sys/kernel/numa_balancing").as_deref(), Some("3"));
    assert_eq!(bench.text("/sys/kernel/mm/numa/demotion_enabled").as_deref(), Some("1"));
    assert_eq!(
        bench.text("/etc/sysctl.d/90-seawall-tier.conf").as_deref(),
        Some("kernel.numa_balancing = 3\n")
    );
    let nodes = Nodes::read(&bench);
    assert!(policy::prefix(&nodes, Policy::Tiered).expect("it does its part").is_empty());
    undo(&mut plan, &bench, |_, _| ()).expect("undone");
    assert_eq!(bench.text("/proc/sys/kernel/numa_balancing").as_deref(), Some("1"));
    assert_eq!(bench.text("/sys/kernel/mm/numa/demotion_enabled").as_deref(), Some("0"));
    assert_eq!(bench.files(), before);
}

#[test]
fn where_the_kernel_has_damon_it_brings_shared_memory_back() {
    let bench = bench();
    assert!(plan(&bench).expect("a plan").text().contains("does not come back this way"));
    bench.write("/proc/sys/kernel/osrelease", "6.12.95+deb12-cloud-amd64");
    bench.write("/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "0");
    bench.write("/sys/devices/system/memory/block_size_bytes", "8000000");
    bench.write("/sys/devices/system/node/node2/memory40/x", "");
    let text = plan(&bench).expect("a plan").text();
    for line in [
        "echo migrate_hot > /sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/schemes/0/action",
        "echo 0 > /sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/schemes/0/target_nid",
        "echo 5368709120 > /sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/targets/0/regions/0/start",
        "echo on > /sys/kernel/mm/damon/admin/kdamonds/0/state",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("does not come back"), "{text}");
    bench.write("/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "1");
    assert!(!plan(&bench).expect("a plan").text().contains("migrate_hot"), "somebody else uses it");
}

#[test]
fn a_policy_is_what_numactl_is_called_with() {
    let nodes = Nodes::read(&bench());
    let words = |policy| policy::prefix(&nodes, policy).expect("possible").join(" ");
    assert_eq!(words(Policy::Fast), "numactl --membind=0,1");
    assert_eq!(words(Policy::Large), "numactl --preferred-many=2");
    assert_eq!(words(Policy::Spread), "numactl --interleave=all");
    policy::prefix(&nodes, Policy::Tiered).expect_err("the kernel moves nothing");
}

#[test]
fn where_there_is_one_kind_of_memory_it_is_said() {
    let bench = Bench::new(&[
        ("/sys/devices/system/node/online", "0"),
        ("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 4096 kB\n"),
    ]);
    assert!(plan(&bench).expect_err("one kind").to_string().contains("of one kind"));
    policy::prefix(&Nodes::read(&bench), Policy::Large).expect_err("no slower memory");
}

#[test]
fn pages_are_added_up_by_node() {
    let text = "7f00 bind:2 file=/dev/zero\\040(deleted) dirty=9 N2=512 N0=1 kernelpagesize_kB=4\n\
                7f10 default anon=3 dirty=3 N0=2 N1=1 kernelpagesize_kB=2048\n\
                7f20 default file=/usr/bin/postgres mapped=9 N0=9 kernelpagesize_kB=4\n";
    let placed = placed::parse(text);
    assert_eq!(placed.shared.into_iter().collect::<Vec<_>>(), [(0, 4096), (2, 512 << 12)]);
    assert_eq!(placed.private.into_iter().collect::<Vec<_>>(), [(0, 4 << 20), (1, 2 << 20)]);
}

#[test]
fn what_counts_as_a_server_s_memory() {
    let text = "5500-5600 r-xp 00000000 fe:00 24 /usr/bin/postgres\nRss: 8 kB\nReferenced: 8 kB\n\
                5600-5700 rw-p 00000000 00:00 0 [heap]\nSize: 20 kB\nRss: 12 kB\nReferenced: 4 kB\n\
                7f00-7f10 rw-s 00000000 00:01 1025 /dev/zero (deleted)\nSize: 400 kB\nRss: 100 kB\nReferenced: 40 kB\n\
                7f20-7f30 rw-s 00000000 00:10 9 /anon_hugepage (deleted)\nSize: 2048 kB\nRss: 0 kB\nShared_Hugetlb: 2048 kB\n";
    let sum = hot::parse(text);
    assert_eq!((sum.private >> 10, sum.private_touched >> 10), (12, 4));
    assert_eq!((sum.shared >> 10, sum.shared_touched >> 10, sum.huge >> 10), (100, 40, 2048));
}

/// This process touches a quarter of what it has: the kernel's answer, not a recorded one.
#[test]
fn what_is_touched_is_told_from_what_is_only_there() {
    const MIB: usize = 1 << 20;
    let mut memory = vec![1u8; 64 * MIB];
    let (hot, cold) = memory.split_at_mut(16 * MIB);
    let done = std::sync::atomic::AtomicBool::new(false);
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                hot.iter_mut().step_by(4096).for_each(|byte| *byte = byte.wrapping_add(1));
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        });
        let measured = hot::measure(&std::process::id().to_string(), 2, |_| ());
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        measured
    })
    .expect("measured");
    assert_eq!(cold.iter().step_by(4096).filter(|byte| **byte == 1).count(), 48 * MIB / 4096);
    assert!(measured.resident >= 64 << 20, "{measured:?}");
    let last = measured.windows.last().expect("windows");
    // Large pages are touched whole, and other tests of this process touch memory too.
    assert!((16 << 20..44 << 20).contains(&last.least), "{measured:?}");
    assert_eq!(measured.windows.len(), 2);
    let size = measured.sizes()[0];
    assert!(size.fetched < (8 << 20) as f64, "what is hot is touched within the first second: {size:?}");
}
