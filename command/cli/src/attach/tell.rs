//! What `seawall attach` says of what it did.

use anyhow::Result;
use serde_json::{Value, json};

use super::choice::{Cached, Near};
use super::drop_in::Attached;
use super::how::Attach;
use super::machine::Machine;
use super::steps::{self, Step};
use super::unit::{follower, pacer, short_name};
use super::{cached, hooks};
use crate::show::{self, Fact};
use crate::size;

/// What is attached now, or would be, by these steps.
pub fn done(how: &Attach, machine: &Machine, wanted: &Attached, steps: &[Step<'_>]) -> Result<()> {
    let is_bare = hooks::is_bare(machine, &wanted.unit);
    if how.json {
        let mut all = serde_json::to_value(wanted)?;
        if let (Some(all), Value::Object(done)) = (all.as_object_mut(), steps::json(steps)) {
            all.extend(done);
        }
        all["daemon"] = json!(wanted.daemon());
        all["changed"] = json!(!how.dry_run && !steps.is_empty());
        all["needs_restart"] = json!(is_bare);
        return show::json(&all);
    }
    if how.dry_run {
        steps.iter().for_each(|step| outln!("would {}", step.words()));
    }
    let verb = match (how.dry_run, steps.is_empty()) {
        (_, true) => "is attached already; nothing was changed",
        (true, false) => "would be attached",
        (false, false) => "is attached",
    };
    let service = short_name(&wanted.unit);
    outln!("{service} {verb}");
    show::facts(&facts(wanted));
    if is_bare {
        outln!("It runs WITHOUT Seawall until its next start: `systemctl restart {service}`");
    }
    Ok(())
}

fn facts(wanted: &Attached) -> Vec<Fact> {
    let mut facts = vec![
        ("data", format!("{} ({}, {})", wanted.data.display(), wanted.preset, wanted.policy)),
        ("pool", wanted.pool.display().to_string()),
        ("daemon", wanted.daemon()),
    ];
    facts.extend(wanted.area.as_ref().map(|area| ("spill area", area.display().to_string())));
    facts.extend(wanted.cache.as_ref().map(|cached| ("block cache", cached.words())));
    let recovery = |near: &Near| {
        let paced = near.user.as_ref().map_or_else(String::new, |_| format!(", {}", pacer(&wanted.unit)));
        ("recovery", format!("within {}, by {}{paced}", near.time, near.file.display()))
    };
    facts.extend(wanted.near.as_ref().map(recovery));
    let tables = |user: &String| ("tables", format!("followed as {user}, by {}", follower(&wanted.unit)));
    facts.extend(wanted.follower.as_ref().map(tables));
    facts
}

/// What becomes of the block cache, and when: on stderr, beside what was asked for.
pub fn of_cache(machine: &Machine, before: Option<&Attached>, wanted: &Attached) {
    if wanted.cache.is_none()
        && let [(other, _), ..] = cached::of_others(machine, wanted).as_slice()
    {
        errln!("seawall: the pool's daemon has a block cache, from {other}; it serves this service too");
    }
    let had = before.and_then(|before| before.cache.as_ref());
    if had == wanted.cache.as_ref() {
        return;
    }
    let (service, daemon) = (short_name(&wanted.unit), wanted.daemon());
    if machine.is_running(&daemon) {
        let has = match had {
            Some(had) => format!("goes on with {}", size::human(had.size)),
            None => "goes on without a block cache".into(),
        };
        errln!(
            "seawall: {daemon} runs and {has} until its next start: `systemctl stop {service} {daemon}`, then `systemctl \
             start {service}`. A cache of another size starts empty"
        );
    }
    let is_left = |had: &&Cached| wanted.cache.as_ref().is_none_or(|now| now.path != had.path);
    if let Some(had) = had.filter(is_left) {
        errln!(
            "seawall: the former block cache {} is not used from then on; nothing in it is needed, so remove it then",
            had.path.display()
        );
    }
}
