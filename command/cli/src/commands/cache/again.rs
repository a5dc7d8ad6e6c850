//! Tables that were rewritten since they were named.

use anyhow::Result;
use seawall_daemon::cache::{Asked, Choice, Listed, Rule, Wanted};
use seawall_wire::message::Kind;

use super::asking::{Which, ask};
use super::names::{Resolver, What};

/// Tables that were rewritten have other files; those that are gone have none, and no policy any more. Returns what
/// holds then.
pub(super) fn ask_again(which: &Which, psql: &str) -> Result<Listed> {
    let (control, listed) = ask(which)?;
    let resolver = Resolver { psql, directories: &listed.directories };
    let mut tables: Vec<(String, Choice)> = Vec::new();
    for rule in listed.policies.iter().map(|policy| &policy.rule) {
        let table = rule.table.clone().map(|table| (table, rule.policy));
        tables.extend(table.filter(|table| !tables.contains(table)));
    }
    if tables.is_empty() {
        return Ok(listed);
    }
    let mut found: Vec<Vec<Rule>> = Vec::new();
    for (table, policy) in &tables {
        let rule = |(path, covers)| Rule { policy: *policy, path, covers, table: Some(table.clone()) };
        match resolver.find(&What::of(table))? {
            Some(files) => found.push(files.into_iter().map(rule).collect()),
            None => errln!("seawall: {table} does not exist any more: its policy is forgotten"),
        }
    }
    // The last rule counts: an index's own comes after its table's.
    found.sort_by_key(|rules| std::cmp::Reverse(rules.len()));
    let rules = found.into_iter().flatten().collect();
    let wanted = Wanted { rules, tables: tables.into_iter().map(|(table, _)| table).collect() };
    Ok(control.request(Kind::Cache, &Asked::Set(wanted))?)
}
