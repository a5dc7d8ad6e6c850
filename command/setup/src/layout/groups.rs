//! Failure groups: which disks fail together, and in which order they hold copies of each other.

use std::collections::BTreeMap;
use std::path::PathBuf;

use seawall_doctor::machine::Machine;

use super::notes::Member;
use crate::disk;
use crate::error::Error;
use crate::host::Host;

/// Each disk with its group: the one that the user named, or the controller it hangs on.
///
/// # Errors
/// A path that is no disk, a disk named twice, groups named for some only.
pub fn grouped(
    host: &dyn Host,
    machine: &Machine,
    disks: &[(PathBuf, Option<String>)],
) -> Result<Vec<Member>, Error> {
    let said = disks.iter().filter(|(_, group)| group.is_some()).count();
    if said != 0 && said != disks.len() {
        return Err(Error::refused(
            "groups are named for some of the disks only: name them for all, or for none",
        ));
    }
    let mut found: Vec<Member> = Vec::new();
    for (device, group) in disks {
        let name = disk::name(host, device)?;
        let known = machine.disk(&name).filter(|disk| disk.name == name);
        let known =
            known.ok_or_else(|| Error::refused(format!("{} is not a whole disk", device.display())))?;
        // Without a controller the disk fails alone, as far as anybody knows.
        let own = || known.controller.clone().unwrap_or_else(|| name.clone());
        let identity = disk::identity(host, &name);
        if found.iter().any(|other| other.identity == identity) {
            return Err(Error::refused(format!("{} is named twice ({identity})", device.display())));
        }
        found.push(Member { device: device.clone(), identity, group: group.clone().unwrap_or_else(own) });
    }
    Ok(found)
}

/// The order in which each `copies` disks that follow each other are of different groups: they hold the same blocks.
///
/// The group that has most disks left gives first, so an order is found whenever there is one.
///
/// # Errors
/// There is none.
pub fn ordered(disks: Vec<Member>, copies: usize) -> Result<Vec<Member>, Error> {
    let count = disks.len();
    if count < copies.max(2) || !count.is_multiple_of(copies) {
        return Err(Error::refused(format!(
            "{count} disks do not fit {copies} copies: their number must be a multiple of {copies}, and at \
             least {}",
            copies.max(2)
        )));
    }
    let mut groups: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    disks.into_iter().rev().for_each(|disk| groups.entry(disk.group.clone()).or_default().push(disk));
    let mut ordered = Vec::new();
    while ordered.len() < count {
        let mut by_size: Vec<(usize, String)> =
            groups.iter().map(|(name, left)| (left.len(), name.clone())).collect();
        by_size.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        for (_, name) in by_size.into_iter().take(copies) {
            ordered.extend(groups.get_mut(&name).and_then(Vec::pop));
        }
        groups.retain(|_, left| !left.is_empty());
        if ordered.len() < count && groups.len() < copies {
            return Err(unequal(copies, &groups));
        }
    }
    Ok(ordered)
}

fn unequal(copies: usize, groups: &BTreeMap<String, Vec<Member>>) -> Error {
    let left: Vec<String> =
        groups.iter().map(|(name, left)| format!("{name} has {} too many", left.len())).collect();
    Error::refused(format!(
        "no group may hold two of {copies} copies, and {}: use equally many disks of each group. Groups are \
         controllers unless GROUP=PATH says more",
        left.join(", ")
    ))
}

/// The places that hold the same blocks (md's layout `near`): block after block, copy after copy, round and round.
pub fn together(members: usize, copies: usize) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for block in 0..members {
        let mut set: Vec<usize> = (0..copies).map(|copy| (block * copies + copy) % members).collect();
        set.sort_unstable();
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disks(groups: &str) -> Vec<Member> {
        let one = |(n, group): (usize, char)| Member {
            device: format!("/dev/{n}").into(),
            identity: n.to_string(),
            group: group.to_string(),
        };
        groups.chars().enumerate().map(one).collect()
    }

    fn order(groups: &str, copies: usize) -> Option<String> {
        let found = ordered(disks(groups), copies).ok()?;
        assert_eq!(found.len(), groups.len());
        Some(found.iter().map(|disk| disk.group.as_str()).collect())
    }

    #[test]
    fn copies_are_of_different_groups() {
        assert_eq!(order("AABB", 2).as_deref(), Some("ABAB"));
        assert_eq!(order("AABC", 2).as_deref(), Some("ABAC"));
        assert_eq!(order("ABCABC", 3).as_deref(), Some("ABCABC"));
        assert_eq!(order("AAAB", 2), None, "three of A cannot have partners");
        assert_eq!(order("ABC", 2), None);
        assert_eq!(order("AA", 1).as_deref(), Some("AA"), "one copy has no partner");
        assert_eq!(order("A", 1), None, "one disk is no layout");
    }

    /// Wherever there is an order it is found, and it is right: all groupings of up to eight disks in up to four groups.
    #[test]
    fn an_order_is_found_whenever_there_is_one() {
        for copies in 2..=3 {
            for count in (copies..=8).step_by(copies) {
                for number in 0..4usize.pow(count as u32) {
                    let groups: String = (0..count)
                        .map(|place| char::from(b'A' + (number / 4usize.pow(place as u32) % 4) as u8))
                        .collect();
                    let largest = ('A'..='D').map(|group| groups.matches(group).count()).max().unwrap_or(0);
                    let found = order(&groups, copies);
                    assert_eq!(found.is_some(), largest <= count / copies, "{groups} {copies}");
                    let is_apart = |set: &Vec<usize>, found: &str| {
                        let held: Vec<char> =
                            set.iter().filter_map(|place| found.chars().nth(*place)).collect();
                        (1..held.len()).all(|n| !held[..n].contains(&held[n]))
                    };
                    let found = found.unwrap_or_default();
                    assert!(
                        found.is_empty() || together(count, copies).iter().all(|set| is_apart(set, &found)),
                        "{groups}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_odd_number_of_disks_has_every_neighbour_as_a_partner() {
        assert_eq!(together(4, 2), [vec![0, 1], vec![2, 3]]);
        assert_eq!(together(3, 2), [vec![0, 1], vec![0, 2], vec![1, 2]]);
    }
}
