use super::*;

pub fn example() -> Attached {
    Attached {
        unit: "redis-server.service".into(),
        pool: "/mnt/pmem/redis.pool".into(),
        preset: "redis".into(),
        policy: "atomic".into(),
        data: "/var/lib/redis".into(),
        program: "/usr/bin/seawall".into(),
        preload: "/usr/lib/seawall/libseawall_preload.so".into(),
        socket: "/run/seawalld/112/redis.pool-00.sock".into(),
        environment: None,
        needs_unix_sockets: true,
        area: None,
        has_keepers: false,
        cache: None,
        follower: None,
        near: None,
    }
}

#[test]
fn what_is_written_is_read_back() {
    let root = tempfile::tempdir().expect("a directory");
    let machine = Machine::new(Some(root.path()));
    let mut attached = example();
    for environment in [None, Some(PathBuf::from("/etc/x/environment"))] {
        attached.environment = environment;
        attached.needs_unix_sockets = !attached.needs_unix_sockets;
        attached.has_keepers = !attached.has_keepers;
        attached.area = attached.area.is_none().then(|| "/mnt/nvme/redis.spill".into());
        attached.near = attached.near.is_none().then(|| Near {
            time: "1s".into(),
            file: "/etc/x/conf.d/y.conf".into(),
            user: Some("postgres".into()),
        });
        attached.follower = attached.follower.is_none().then(|| "postgres".into());
        let path = "/mnt/pmem/redis.pool.cache".into();
        attached.cache = attached.cache.is_none().then_some(Cached {
            size: 1 << 30,
            block_bytes: 4096,
            path,
            max: Some(1 << 41),
            write_budget: Some(1 << 40),
        });
        machine.write(&drop_in(&attached.unit), &attached.render()).expect("written");
        let back = Attached::load(&machine, &attached.unit).expect("read");
        assert_eq!(back.as_ref(), Some(&attached));
    }
    assert_eq!(Attached::load(&machine, "other.service").expect("read"), None);
    machine.write(&drop_in("x.service"), "[Service]\n").expect("written");
    let error = Attached::load(&machine, "x.service").expect_err("not ours");
    assert!(error.to_string().contains("X-Seawall"), "{error}");
}

#[test]
fn paths_that_a_unit_would_change_are_refused() {
    check_plain(Path::new("/mnt/pmem/a-b_c.1@x")).expect("plain");
    for wrong in ["/a b", "/a%i", "/a$b", "/a\"b", "/a\nb"] {
        assert!(check_plain(Path::new(wrong)).is_err(), "{wrong}");
    }
}
