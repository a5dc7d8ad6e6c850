//! `seawall mount --fuse-uring`: what it uses, and what it says where it cannot use that.
//!
//! Files of the test's, which nobody else sees, lie over what the kernel says of itself.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::mounts::Mounts;
use crate::common::{SEAWALL, Said, cc, has};
use nix::mount::{MsFlags, mount};

const SETTING: &str = "/sys/module/fuse/parameters/enable_uring";
const PROCESSORS: &str = "/sys/devices/system/cpu/possible";

/// In place of what `path` says, in this thread's mount namespace.
fn says(m: &Mounts, path: &str, text: &str) {
    let file = m.place.file(&path.replace('/', "-"));
    fs::write(&file, text).expect("written");
    mount(Some(&file), path, None::<&str>, MsFlags::MS_BIND, None::<&str>).expect("laid over");
}

/// `None` where the kernel has no such setting.
fn with_setting(text: &str) -> Option<Mounts> {
    let m = Mounts::new()?;
    if !Path::new(SETTING).exists() {
        eprintln!("skipped: this kernel has no FUSE over io_uring");
        return None;
    }
    says(&m, SETTING, text);
    Some(m)
}

/// Mounts, not `--quiet`, by a program that takes things away from it.
fn mount_under(m: &Mounts, under: &[&str], fuse_uring: &str) -> Said {
    let mut words = under.iter().chain(&[SEAWALL]);
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).args(["mount", "backing", "at", "--pool", m.place.pool(), "--preset", "sqlite"]);
    command.args(["--fuse-uring", fuse_uring]).current_dir(m.place.data.path()).stdin(Stdio::null());
    command.output().expect("it starts").into()
}

fn mount_by(m: &Mounts, fuse_uring: &str) -> Said {
    mount_under(m, &[], fuse_uring)
}

/// It serves, and `status` says by which way.
fn serves(m: &Mounts, way: &str, in_words: &str) {
    fs::write(m.at("x"), "written").expect("it serves");
    assert_eq!(m.place.status()["mounts"][0]["requests"], way);
    let told = m.place.seawall(&["status", "--pool", m.place.pool()]);
    assert!(told.out.contains(&format!("requests by {in_words}")), "{}", told.out);
    m.umount().succeeds();
    assert_eq!(fs::read(m.behind("x")).expect("read"), b"written");
}

#[test]
fn without_the_switch() {
    let Some(m) = with_setting("N\n") else { return };
    mount_by(&m, "on").fails(1, &["--fuse-uring on", "enable_uring"]);
    mount_by(&m, "auto").succeeds().says(&["requests by /dev/fuse", "enable_uring"]);
    serves(&m, "device", "/dev/fuse");
}

#[test]
fn switched_off_by_hand() {
    let Some(m) = with_setting("Y\n") else { return };
    mount_by(&m, "off").succeeds().says(&["requests by /dev/fuse", "--fuse-uring off"]);
    serves(&m, "device", "/dev/fuse");
}

/// As in a container, or for another user than root.
#[test]
fn without_the_right_to_a_long_socket() {
    let Some(m) = with_setting("Y\n") else { return };
    if !has("setpriv") {
        return eprintln!("skipped: needs setpriv");
    }
    let less = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"];
    mount_under(&m, &less, "on").fails(1, &["--fuse-uring on", "CAP_NET_ADMIN"]);
    let said = mount_under(&m, &less, "auto");
    said.succeeds().says(&["requests by /dev/fuse", "CAP_NET_ADMIN"]);
    assert_eq!(said.err.lines().filter(|line| line.contains("CAP_NET_ADMIN")).count(), 1, "{}", said.err);
    serves(&m, "device", "/dev/fuse");
}

/// As in a container whose seccomp filter knows no io_uring.
#[test]
fn without_io_uring() {
    let Some(m) = with_setting("Y\n") else { return };
    let Some(deny) = cc(&m.place, "deny", include_str!("programs/deny.c"), &[]) else { return };
    let deny = deny.to_str().expect("text");
    for (errno, text) in [("1", "Operation not permitted"), ("38", "Function not implemented")] {
        mount_under(&m, &[deny, errno], "on").fails(1, &["--fuse-uring on", text]);
        mount_under(&m, &[deny, errno], "auto").succeeds().says(&["requests by /dev/fuse", text]);
        serves(&m, "device", "/dev/fuse");
    }
}

/// The machine says that it has more processors than there can be, or the setting that io_uring may be used.
#[test]
fn a_kernel_that_has_less_than_it_says() {
    let Some(m) = with_setting("Y\n") else { return };
    let list = fs::read_to_string(PROCESSORS).expect("a list");
    says(&m, PROCESSORS, &format!("{},4000-4001\n", list.trim()));
    let said = mount_by(&m, "on");
    if said.code == Some(0) {
        said.says(&["requests by io_uring"]);
        return serves(&m, "ring", "io_uring");
    }
    said.fails(1, &["--fuse-uring on", "does not offer"]);
    mount_by(&m, "auto").succeeds().says(&["requests by /dev/fuse", "does not offer"]);
    serves(&m, "device", "/dev/fuse");
}

#[test]
fn processors_that_cannot_be_counted() {
    let Some(m) = with_setting("Y\n") else { return };
    says(&m, PROCESSORS, "many\n");
    mount_by(&m, "on").fails(1, &["--fuse-uring on", "processors"]);
    mount_by(&m, "auto").succeeds().says(&["requests by /dev/fuse", "processors"]);
    serves(&m, "device", "/dev/fuse");
}
