//! A layout by md: RAID 10 in its layout `near`, RAID 0 for one copy.

use std::path::{Path, PathBuf};

use super::made::{empty, made};
use super::notes::Set;
use super::wish::{By, Wish};
use crate::disk;
use crate::host::Host;
use crate::mkfs::{New, Shape};
use crate::plan::{Act, Check, Plan, Step};
use crate::uuid::uuid;

/// Where arrays are listed: Debian's place, and others'.
const CONFIGURATION: [&str; 2] = ["/etc/mdadm/mdadm.conf", "/etc/mdadm.conf"];

/// The array, its name after a start, and its file system. Gives that one's UUID.
pub fn steps(host: &dyn Host, plan: &mut Plan, wish: &Wish, set: &Set) -> String {
    debug_assert_eq!(wish.by, By::Md);
    plan.needs.push(Check::program("mdadm", "mdadm"));
    plan.needs.extend(empty(set));
    let device = PathBuf::from("/dev/md").join(&set.name);
    let shown = device.to_string_lossy().into_owned();
    let title = format!("{shown}: {} disks as one", set.members.len());
    plan.steps.push(made(set, By::Md, title, created(wish, set, &shown)));
    plan.steps.push(Step::new("the array gets its name", Act::Await { path: device }));
    let line = format!("ARRAY {shown} metadata=1.2 name=any:{} UUID={}", set.name, of_mdadm(&set.uuid));
    let path = configuration(host);
    let added = Act::AddLine { path: path.clone(), line: line.clone() };
    let removed = Act::RemoveLine { path, line };
    plan.steps.push(Step::new("it has that name after each start", added).undo(removed));
    file_system(plan, wish, set, &shown)
}

fn created(wish: &Wish, set: &Set, shown: &str) -> Act {
    let copies = wish.redundancy.copies();
    let options = [
        format!("--chunk={}", wish.unit >> 10),
        format!("--raid-devices={}", set.members.len()),
        format!("--name={}", set.name),
        format!("--uuid={}", of_mdadm(&set.uuid)),
    ];
    let mut words: Vec<String> =
        ["mdadm", "--create", shown, "--run", "--metadata=1.2", "--homehost=any"].map(str::to_owned).to_vec();
    words.extend(options);
    if copies == 1 {
        words.push("--level=0".into());
    } else {
        words.extend(["--level=10".into(), format!("--layout=n{copies}"), "--bitmap=internal".into()]);
    }
    words.extend(set.members.iter().map(|member| member.device.to_string_lossy().into_owned()));
    Act::run(words)
}

fn configuration(host: &dyn Host) -> PathBuf {
    let [debian, other] = CONFIGURATION.map(Path::new);
    let has = host.root().has(debian.parent().unwrap_or(debian));
    if has { debian } else { other }.to_owned()
}

fn file_system(plan: &mut Plan, wish: &Wish, set: &Set, path: &str) -> String {
    let uuid = uuid();
    let width = (set.members.len() / wish.redundancy.copies()) as u64;
    let shape = Shape::Stripes { unit: wish.unit, width };
    let new = New { kind: wish.file_system, device: path, label: &set.name, uuid: &uuid, shape };
    plan.needs.push(new.program());
    plan.steps.push(Step::new(format!("a file system on {path}"), new.act()));
    uuid
}

/// `0a1b2c3d:…`: md writes its UUIDs in four words.
pub fn of_mdadm(uuid: &str) -> String {
    let digits: String = uuid.chars().filter(|c| *c != '-').collect();
    [&digits[..8], &digits[8..16], &digits[16..24], &digits[24..]].join(":")
}

/// What the kernel says of an array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Array {
    /// `raid10`
    pub level: String,
    /// Copies (near).
    pub copies: usize,
    /// Disk by place: its name and its state, as md says it.
    pub places: Vec<Option<(String, String)>>,
    /// Disks without a place: spares, those that failed.
    pub others: Vec<(String, String)>,
    /// Places that have no disk that is in step.
    pub degraded: u32,
    /// `idle`, `recover`, `resync`, `reshape`, `check`
    pub action: String,
    /// How far that is, in percent.
    pub percent: Option<u64>,
    /// KiB a second of that.
    pub speed: u64,
    /// `clean`, `active`, `inactive` …
    pub state: String,
}

/// Reads it.
pub fn read(host: &dyn Host, name: &str) -> Array {
    let root = host.root();
    let at = PathBuf::from(format!("/sys/block/{name}/md"));
    let text = |file: &str| root.text(at.join(file)).unwrap_or_default();
    let number = |file: &str| root.number::<u64>(at.join(file)).unwrap_or(0);
    let count = text("raid_disks").split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut array = Array {
        level: text("level"),
        // The low byte counts near copies, the next one far ones.
        copies: (number("layout") & 0xff).max(1) as usize,
        places: vec![None; count],
        degraded: number("degraded") as u32,
        action: text("sync_action"),
        percent: percent(&text("sync_completed")),
        speed: number("sync_speed"),
        state: text("array_state"),
        ..Array::default()
    };
    for entry in root.names(&at).iter().filter_map(|entry| entry.strip_prefix("dev-")) {
        let state = text(&format!("dev-{entry}/state"));
        // A replacement has the place of the disk that it replaces.
        let place = text(&format!("dev-{entry}/slot"))
            .parse()
            .ok()
            .filter(|_| !state.contains("replacement") || state.contains("want_replacement"));
        match place.and_then(|place: usize| array.places.get_mut(place)) {
            Some(free) => *free = Some((entry.to_owned(), state)),
            None => array.others.push((entry.to_owned(), state)),
        }
    }
    array
}

/// `1024 / 4096`
fn percent(completed: &str) -> Option<u64> {
    let (done, all) = completed.split_once('/')?;
    let (done, all): (u64, u64) = (done.trim().parse().ok()?, all.trim().parse().ok()?);
    (done * 100).checked_div(all)
}

/// The members that an array has, by name.
pub fn holds(host: &dyn Host, array: &Array, device: &Path) -> Option<String> {
    let name = disk::name(host, device).ok()?;
    let placed = array.places.iter().flatten();
    placed.chain(&array.others).find(|(member, _)| *member == name).map(|(_, state)| state.clone())
}
