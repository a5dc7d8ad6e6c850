//! What is known of the keepers of a log, for `status`.

use std::sync::atomic::Ordering::SeqCst;

use seawall_keeper::holder::Holder;
use seawall_keeper::meta::{Member, Mode};
use seawall_keeper::uuid::uuid_text;
use seawall_keeper::writer::{LinkReport, Role};
use seawall_media::locks::lock;
use seawall_stats::Tally;
use seawall_wire::desk::Desk;
use serde::{Deserialize, Serialize};

use super::Kept;
use super::state::State;
use crate::parts::survives;

/// What is known of the keepers, for `status`.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeptStatus {
    /// The log's UUID.
    pub log: String,
    /// How many confirm a commit before it is acknowledged.
    pub acks: usize,
    /// How many count now.
    #[serde(default)]
    pub counting: usize,
    /// The writer's turn.
    pub epoch: u64,
    /// The newest batch that counts.
    pub last: u64,
    /// How the keepers are reached: `TLS 1.3` or `clear text`.
    #[serde(default)]
    pub transport: String,
    /// Who encrypts: `kernel`, and every process sends; `daemon`, and it sends for all. `None` in clear text, and while no
    /// keeper is reached.
    #[serde(default)]
    pub encrypts: Option<String>,
    /// Until when this host's certificate is valid, in seconds since 1970, where it has one.
    #[serde(default)]
    pub certificate_until: Option<i64>,
    /// What that survives, in words.
    pub survives: String,
    /// What is done without enough keepers.
    #[serde(default)]
    pub mode: Mode,
    /// For how many seconds this host has gone on without enough keepers, if it does.
    #[serde(default)]
    pub alone_s: Option<f64>,
    /// For how long that was so, since this daemon began: seconds.
    #[serde(default)]
    pub alone_total_s: f64,
    /// How often that began.
    #[serde(default)]
    pub alone_times: u64,
    /// Why nothing is written any more.
    pub over: Option<String>,
    /// For how long fewer keepers than that counted, since this daemon began: seconds.
    #[serde(default)]
    pub short_s: f64,
    /// How often that began.
    #[serde(default)]
    pub short_times: u64,
    /// The host that took the log over.
    #[serde(default)]
    pub taken_by: Option<Holder>,
    /// Each keeper.
    pub keepers: Vec<KeeperStatus>,
}

/// One keeper.
#[derive(Debug, Serialize, Deserialize)]
pub struct KeeperStatus {
    /// Where it is.
    pub address: String,
    /// `counts`, `joins`, `waits`, `down`, `fenced`.
    pub role: String,
    /// It has no data.
    pub witness: bool,
    /// It confirms only what its disk has.
    pub affirms: bool,
    /// Batches that it lacks.
    pub behind: u64,
    /// Bytes of those that were sent since this daemon began.
    #[serde(default)]
    pub behind_bytes: u64,
    /// Up to which batch its disk has them.
    pub hardened: u64,
    /// Bytes that were sent to it.
    #[serde(default)]
    pub sent_bytes: u64,
    /// How often it was connected to again after it had been lost.
    #[serde(default)]
    pub reconnects: u64,
    /// How often its connection was made anew because the keys were worn, since this daemon began. No batch was missed then.
    #[serde(default)]
    pub renewals: u64,
    /// Batches of which it is known how long it took to confirm them. Answers that came while nobody listened, since
    /// enough others had answered, are not among them.
    pub answers: u64,
    /// How long that took: the mean, in microseconds.
    pub mean_us: f64,
    /// The median.
    #[serde(default)]
    pub p50_us: f64,
    /// 99 of 100 are shorter.
    #[serde(default)]
    pub p99_us: f64,
    /// The longest.
    pub longest_us: f64,
    /// All of them together, in nanoseconds.
    #[serde(default)]
    pub sum_ns: u64,
    /// The histogram: the lower border of a bucket in nanoseconds, and how many were in it; no empty ones.
    #[serde(default)]
    pub buckets: Vec<(u64, u64)>,
    /// What was wrong last.
    pub trouble: String,
}

impl Kept {
    /// What each keeper is, and what is wrong with it.
    pub fn roles(&self) -> Vec<(String, Role, String)> {
        let state = lock(&self.state);
        let members = state.writer.roster().members.iter();
        members
            .zip(state.writer.known())
            .map(|(m, link)| (m.address.clone(), link.role, link.trouble.to_owned()))
            .collect()
    }

    /// What is known of the keepers, on the log's desk as well.
    pub fn status(&self, desk: Desk<'_>) -> KeptStatus {
        let state = lock(&self.state);
        let (head, writer, mut links) = (state.writer.head(), &state.writer, state.writer.report());
        let last = head.last.max(desk.newest().0.number());
        for (keeper, known) in links.iter_mut().enumerate().filter(|(_, known)| known.role == Role::Counts) {
            let link = desk.link(keeper);
            known.confirmed = known.confirmed.max(link.confirmed().load(SeqCst));
            known.hardened = known.hardened.max(link.hardened().load(SeqCst));
            if link.counts() && !link.is_usable() {
                known.role = Role::Down;
            }
        }
        let survives = survives::now(writer.roster(), &links);
        let members = writer.roster().members.iter().enumerate();
        let keepers = links.iter().zip(members);
        let of = |(link, (i, member)): (_, (usize, &Member))| {
            KeeperStatus::of(link, member, last, desk.tally(i), state.renewal.times(i))
        };
        KeptStatus {
            log: uuid_text(self.log),
            acks: writer.quorum().acks,
            counting: writer.counting(),
            epoch: head.epoch.counter,
            last,
            transport: self.transport.name().into(),
            encrypts: self.encrypts(&state),
            certificate_until: self.transport.certificate_until(),
            survives,
            over: state.over(),
            mode: writer.roster().mode,
            alone_s: state.alone.now().map(|alone| alone.as_secs_f64()),
            alone_total_s: state.alone.total().as_secs_f64(),
            alone_times: state.alone.times,
            taken_by: state.taken_by.as_ref().and_then(|(holder, _)| holder.clone()),
            short_s: state.short.total().as_secs_f64(),
            short_times: state.short.times,
            keepers: keepers.map(of).collect(),
        }
    }

    /// Who encrypts, if that is done and a keeper is reached.
    fn encrypts(&self, state: &State) -> Option<String> {
        let is_by_kernel = state.writer.are_shareable().filter(|_| self.transport.is_encrypted())?;
        Some(if is_by_kernel { "kernel" } else { "daemon" }.into())
    }
}

impl KeeperStatus {
    /// Of this member of the roster, of whose log `last` is the newest batch that counts.
    fn of(link: &LinkReport<'_>, member: &Member, last: u64, tally: Tally<'_>, renewals: u64) -> Self {
        let (trips, us) = (tally.round_trips(), |ns: u64| ns as f64 / 1e3);
        Self {
            address: member.address.clone(),
            role: link.role.name().into(),
            witness: member.witness,
            affirms: link.state.is_some_and(|state| state.affirms()),
            behind: last.saturating_sub(link.confirmed),
            behind_bytes: link.lacks,
            hardened: link.hardened,
            sent_bytes: tally.sent_bytes(),
            reconnects: tally.reconnects(),
            renewals,
            answers: trips.count,
            mean_us: us(trips.sum_ns.checked_div(trips.count).unwrap_or(0)),
            p50_us: us(trips.quantile_ns(0.5)),
            p99_us: us(trips.quantile_ns(0.99)),
            longest_us: us(trips.longest_ns),
            sum_ns: trips.sum_ns,
            buckets: trips.filled(),
            trouble: link.trouble.into(),
        }
    }
}
