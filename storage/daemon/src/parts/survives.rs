//! What a log that keepers keep survives, in words.

use seawall_keeper::meta::Roster;
use seawall_keeper::writer::{LinkReport, Role};

/// In words, for the next commit: keepers whose word does not count now are lost already. Those that were never reached are
/// taken for such that keep their copy in memory.
pub(crate) fn now(roster: &Roster, links: &[LinkReport]) -> String {
    let (counting, missing): (Vec<_>, Vec<_>) = links.iter().partition(|link| link.role == Role::Counts);
    text(roster, links, missing.len(), counting.iter().filter(|link| link.has_data()).count())
}

/// The same with every keeper's word.
pub(crate) fn with_all(roster: &Roster, links: &[LinkReport]) -> String {
    text(roster, links, 0, roster.members.iter().filter(|member| !member.witness).count())
}

fn text(roster: &Roster, links: &[LinkReport], missing: usize, with_data: usize) -> String {
    let quorum = roster.quorum();
    let witnesses = roster.members.iter().filter(|member| member.witness).count();
    let affirming =
        links.iter().filter(|link| link.state.is_some_and(|s| s.affirms() && !s.is_witness())).count();
    // Of any `acks` keepers that confirm, so many affirm at least.
    let others = quorum.keepers - affirming;
    let affirmed = quorum.acks.saturating_sub(others);
    let hosts = match quorum.survives(missing, with_data) {
        0 => "the loss of this host; not that of a keeper at the same time".to_owned(),
        1 => "the loss of this host and of one keeper at the same time".to_owned(),
        more => format!("the loss of this host and of {more} keepers at the same time"),
    };
    let hosts = match missing {
        0 => hosts,
        1 => format!("{hosts}, while one keeper does not count"),
        more => format!("{hosts}, while {more} keepers do not count"),
    };
    let power = match affirmed {
        0 => "a power cut of all of them at once is not survived",
        _ => "a power cut of all of them at once is survived, since each commit is on the disk of a keeper",
    };
    let witness = if witnesses == 0 { String::new() } else { format!(" ({witnesses} without data)") };
    let (acks, keepers) = (quorum.acks, quorum.keepers);
    format!("{acks} of {keepers} keepers{witness} confirm each commit: survives {hosts}; {power}")
}
