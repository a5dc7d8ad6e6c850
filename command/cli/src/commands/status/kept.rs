//! The keepers of a log.

use seawall_awr::clock::wall_ms;
use seawall_daemon::kept::{KeeperStatus, KeptStatus};
use seawall_keeper::tls::utc;

use crate::show::{self, Fact};
use crate::size;

/// Seconds for which a certificate should be valid at least: two weeks.
const SOON: i64 = 14 * 86_400;

/// The keepers of a log, and what is wrong with them.
pub fn facts(kept: &KeptStatus) -> Vec<Fact> {
    let survives = format!("{}; {} are reached now", kept.survives, kept.counting);
    let encrypts = kept.encrypts.as_ref().map_or_else(String::new, |who| format!(" in the {who}"));
    let mut facts = vec![("survives", survives), ("keepers by", format!("{}{encrypts}", kept.transport))];
    facts.extend(kept.certificate_until.map(certificate));
    facts.extend(kept.over.iter().map(|why| ("NO COMMITS", why.clone())));
    if let Some(seconds) = kept.alone_s {
        let text = format!(
            "for {seconds:.0} s: commits are durable on this host's disk alone, until {} keepers have the log again",
            kept.acks
        );
        facts.push(("ALONE", text));
    }
    if kept.short_times > 0 {
        let text = format!("{} times, for {:.1} s in all", kept.short_times, kept.short_s);
        facts.push(("too few keepers", text));
    }
    facts.extend(kept.keepers.iter().map(|one| ("keeper", keeper(one))));
    facts
}

/// That of this host. Open connections go on without it; the next one does not.
fn certificate(until: i64) -> Fact {
    let left = until - wall_ms() / 1000;
    let text = format!("valid until {}", utc(until));
    match left {
        ..0 => (
            "CERTIFICATE EXPIRED",
            format!("{text}: a keeper that is lost cannot reconnect. `seawall keeper cert owner … --renew`"),
        ),
        0..SOON => ("CERTIFICATE EXPIRES", format!("{text}: `seawall keeper cert owner … --renew`")),
        _ => ("certificate", text),
    }
}

fn keeper(k: &KeeperStatus) -> String {
    let mut text = k.address.clone();
    if k.witness {
        text += ", a witness";
    }
    text += &format!(", {}", k.role);
    if k.answers > 0 {
        let [p50, p99, longest] = [k.p50_us, k.p99_us, k.longest_us].map(|us| show::time((us * 1e3) as u64));
        text += &format!(", answers in {p50} (p99 {p99}, longest {longest})");
    }
    text += &format!(", {} sent", size::human(k.sent_bytes));
    if k.behind > 0 {
        text += &format!(", {} batches behind ({})", k.behind, size::human(k.behind_bytes));
    }
    if k.reconnects > 0 {
        text += &format!(", connected again {} times", k.reconnects);
    }
    if !k.trouble.is_empty() {
        text += &format!(": {}", k.trouble);
    }
    text
}
