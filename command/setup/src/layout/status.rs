//! How a layout is: which disks it has, whether copies are apart, what it is at.
//!
//! Everything is read from the kernel at the moment of asking; from the record comes only which disk is of which group.

use std::collections::BTreeSet;

use serde::Serialize;

use super::notes::{Member, Notes, Set, md_name, shared};
use super::wish::By;
use super::{btrfs, groups, guard, md};
use crate::disk;
use crate::error::Error;
use crate::host::Host;
use crate::plan::Plan;

/// The worst of what was seen. Its number is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All copies are there, and apart.
    Sound = 0,
    /// A copy is missing, or is being made.
    Reduced = 1,
    /// Copies are not apart, or nothing can be read.
    Broken = 2,
}

/// A layout.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// What made it.
    pub by: By,
    /// Copies that were asked for.
    pub copies: usize,
    /// The worst of its sets.
    pub verdict: Verdict,
    /// One for everything, or one for the data and one for the redo log.
    pub sets: Vec<SetStatus>,
    /// What fails together of log and data.
    pub shared: Vec<String>,
    /// Whether others can write to the disks.
    pub strangers: String,
}

/// Disks that are one.
#[derive(Clone, Debug, Serialize)]
pub struct SetStatus {
    /// `/dev/md/NAME`; the label.
    pub name: String,
    /// It holds the redo log alone.
    pub redo: bool,
    /// How it is.
    pub verdict: Verdict,
    /// The same in words.
    pub state: String,
    /// Its disks, in order.
    pub members: Vec<MemberStatus>,
    /// That copies are apart, and how that is known; or which are not.
    pub proof: Vec<String>,
}

/// One disk.
#[derive(Clone, Debug, Serialize)]
pub struct MemberStatus {
    /// Its place.
    pub place: Option<usize>,
    /// Its name now; none if it is gone.
    pub device: Option<String>,
    /// Its group.
    pub group: Option<String>,
    /// Its state.
    pub state: String,
    /// The kernel refuses writes to it by others.
    pub guarded: bool,
}

/// Looks.
///
/// # Errors
/// The record cannot be read.
pub fn of(host: &dyn Host, plan: &Plan) -> Result<Status, Error> {
    let notes = Notes::of(plan)?;
    let sets: Vec<SetStatus> = notes.sets.iter().map(|set| one(host, &notes, set)).collect();
    Ok(Status {
        name: plan.name.clone(),
        by: notes.by,
        copies: notes.copies,
        verdict: sets.iter().map(|set| set.verdict).max().unwrap_or(Verdict::Broken),
        shared: shared(&notes.sets),
        strangers: strangers(&sets),
        sets,
    })
}

fn one(host: &dyn Host, notes: &Notes, set: &Set) -> SetStatus {
    match notes.by {
        By::Md => by_md(host, notes, set),
        By::Btrfs => by_btrfs(host, notes, set),
    }
}

fn strangers(sets: &[SetStatus]) -> String {
    let open = |member: &&MemberStatus| !member.guarded && member.device.is_some();
    let open: Vec<&str> = sets
        .iter()
        .flat_map(|set| &set.members)
        .filter(open)
        .filter_map(|member| member.device.as_deref())
        .collect();
    match open[..] {
        [] => "the kernel refuses writes to these disks by others".into(),
        _ => format!(
            "any program that runs as root can write to {}: seawall layout guard prevents that",
            open.join(", ")
        ),
    }
}

fn group_of(host: &dyn Host, set: &Set, name: &str) -> Option<String> {
    let identity = disk::identity(host, name);
    let is_it = |member: &&Member| member.identity == identity;
    set.members.iter().find(is_it).map(|member| member.group.clone())
}

fn by_md(host: &dyn Host, notes: &Notes, set: &Set) -> SetStatus {
    let Ok(name) = md_name(host, set) else {
        return gone(set, format!("/dev/md/{} does not exist", set.name));
    };
    let array = there(host, md::read(host, &name));
    let member = |place: Option<usize>, found: Option<&(String, String)>| MemberStatus {
        place,
        device: found.map(|(name, _)| name.clone()),
        group: found.and_then(|(name, _)| group_of(host, set, name)),
        state: found.map_or("missing".into(), |(_, state)| state.clone()),
        guarded: found.is_some_and(|(name, _)| guard::is_marked(host, name)),
    };
    let mut members: Vec<MemberStatus> =
        array.places.iter().enumerate().map(|(place, found)| member(Some(place), found.as_ref())).collect();
    members.extend(array.others.iter().map(|found| member(None, Some(found))));
    let bad = violations(&members, array.places.len(), array.copies);
    let is_idle = matches!(array.action.as_str(), "idle" | "check" | "");
    let verdict = match () {
        () if array.copies < notes.copies || !bad.is_empty() => Verdict::Broken,
        () if array.state == "inactive" || array.state == "clear" => Verdict::Broken,
        () if array.degraded > 0 || !is_idle => Verdict::Reduced,
        () => Verdict::Sound,
    };
    SetStatus {
        name: set.name.clone(),
        redo: set.redo,
        verdict,
        state: words(&array),
        proof: if bad.is_empty() { vec![proven(&array)] } else { bad },
        members,
    }
}

/// A disk that was torn out is md's until it is written to.
fn there(host: &dyn Host, mut array: md::Array) -> md::Array {
    let is_gone = |(name, _): &(String, String)| !host.root().has(format!("/sys/block/{name}"));
    for place in &mut array.places {
        if place.as_ref().is_some_and(is_gone) {
            *place = None;
        }
    }
    array.others.retain(|other| !is_gone(other));
    let empty = array.places.iter().filter(|place| place.is_none()).count() as u32;
    array.degraded = array.degraded.max(empty);
    array
}

/// The state of an array in words.
pub(super) fn words_of(host: &dyn Host, name: &str) -> String {
    words(&md::read(host, name))
}

fn words(array: &md::Array) -> String {
    let mut words = format!("{}, {}", array.level, array.state);
    if array.degraded > 0 {
        words += &format!(", {} disks missing or not in sync", array.degraded);
    }
    if !matches!(array.action.as_str(), "idle" | "") {
        words += &format!(", {}", array.action);
        words += &array.percent.map(|percent| format!(" {percent} %")).unwrap_or_default();
        words += &format!(" at {} KiB/s", array.speed);
    }
    words
}

fn proven(array: &md::Array) -> String {
    if array.copies == 1 {
        return "one copy: the disks below must protect themselves".into();
    }
    let sets = groups::together(array.places.len(), array.copies).len();
    format!(
        "no failure group holds two copies: all {sets} sets of {} places are of different groups",
        array.copies
    )
}

/// Sets of places that hold the same blocks, two of them of one group, or of none that is known.
fn violations(members: &[MemberStatus], places: usize, copies: usize) -> Vec<String> {
    let mut bad = Vec::new();
    for set in groups::together(places, copies).into_iter().filter(|_| copies > 1) {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for member in set.iter().filter_map(|place| members.get(*place)) {
            let Some(device) = &member.device else { continue };
            match &member.group {
                None => bad.push(format!(
                    "{device} belongs to no known group: seawall layout replace takes disks in"
                )),
                Some(group) if !seen.insert(group) => {
                    bad.push(format!("group {group} holds two copies of the same blocks: places {set:?}"));
                }
                Some(_) => {}
            }
        }
    }
    bad
}

fn gone(set: &Set, state: String) -> SetStatus {
    SetStatus {
        name: set.name.clone(),
        redo: set.redo,
        verdict: Verdict::Broken,
        state,
        members: Vec::new(),
        proof: Vec::new(),
    }
}

fn by_btrfs(host: &dyn Host, notes: &Notes, set: &Set) -> SetStatus {
    let root = host.root();
    let at = format!("/sys/fs/btrfs/{}", set.uuid);
    if !root.has(&at) {
        return gone(set, "it is not mounted".into());
    }
    let missing = root.names(format!("{at}/devinfo")).into_iter();
    let missing =
        missing.filter(|id| root.text(format!("{at}/devinfo/{id}/missing")).as_deref() == Some("1")).count();
    let mut members: Vec<MemberStatus> = root
        .names(format!("{at}/devices"))
        .into_iter()
        .map(|name| MemberStatus {
            place: None,
            group: group_of(host, set, &name),
            guarded: guard::is_marked(host, &name),
            device: Some(name),
            state: "in use".into(),
        })
        .collect();
    members.extend((0..missing).map(|_| MemberStatus {
        place: None,
        device: None,
        group: None,
        state: "missing".into(),
        guarded: false,
    }));
    let busy = root.text(format!("{at}/exclusive_operation")).unwrap_or_else(|| "none".into());
    let bad = too_few(host, &at, notes, set);
    let verdict = match () {
        () if !bad.is_empty() => Verdict::Broken,
        () if missing > 0 || busy.contains("replace") || busy.contains("remove") => Verdict::Reduced,
        () => Verdict::Sound,
    };
    let state = format!("btrfs, {missing} disks missing, operation: {busy}");
    let proven = || {
        "no failure group holds two copies: each disk is a group, and btrfs puts the copies of a chunk on different disks".into()
    };
    let proof = if bad.is_empty() { vec![proven()] } else { bad };
    SetStatus { name: set.name.clone(), redo: set.redo, verdict, state, members, proof }
}

/// Kinds of chunks that have fewer copies than were asked for, while something lies in them.
fn too_few(host: &dyn Host, at: &str, notes: &Notes, set: &Set) -> Vec<String> {
    let mut bad = Vec::new();
    for kind in ["data", "metadata", "system"] {
        for profile in host.root().names(format!("{at}/allocation/{kind}")) {
            let held: u64 =
                host.root().number(format!("{at}/allocation/{kind}/{profile}/used_bytes")).unwrap_or(0);
            if held > 0 && copies_of(&profile).is_some_and(|copies| copies < notes.copies) {
                bad.push(format!(
                    "{held} bytes of {kind} are {profile}: seawall layout rebalance {}",
                    set.name
                ));
            }
        }
    }
    if notes.copies > 1 && !btrfs::is_apart(set) {
        bad.push("two disks are in one group, and btrfs may choose either of them".into());
    }
    bad
}

/// Copies on different disks; `dup` has two on one.
fn copies_of(profile: &str) -> Option<usize> {
    match profile {
        "single" | "dup" | "raid0" => Some(1),
        "raid1" | "raid10" => Some(2),
        "raid1c3" => Some(3),
        "raid1c4" => Some(4),
        _ => None,
    }
}
