//! Which file has which policy: rules over paths, the most specific of which holds. Pure: no file is looked at.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use seawall_cache::set::Policy;
use serde::{Deserialize, Serialize};

/// A policy by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// Blocks enter at once, and those of other files do not drive them out.
    Keep,
    /// Blocks compete for their places.
    #[default]
    Default,
    /// Files are not cached.
    None,
}

impl Choice {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Default => "default",
            Self::None => "none",
        }
    }
}

impl From<Choice> for Policy {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::Keep => Self::Keep,
            Choice::Default => Self::Default,
            Choice::None => Self::None,
        }
    }
}

/// Which files a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Covers {
    /// The file of this path, or all below this directory.
    Tree,
    /// The file of this path with its further segments and its forks, as PostgreSQL names them.
    Relation,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// What is to be done.
    pub policy: Choice,
    /// A real path.
    #[serde(with = "seawall_core::path_text")]
    pub path: PathBuf,
    /// Which files.
    pub covers: Covers,
    /// The table it was made for, as it was named.
    #[serde(default)]
    pub table: Option<String>,
}

impl Rule {
    /// True if it is for the file at this real path, when no more specific one is.
    pub fn matches(&self, path: &Path) -> bool {
        match self.covers {
            Covers::Tree => path.starts_with(&self.path),
            Covers::Relation => {
                path.parent() == self.path.parent()
                    && is_part_of(
                        self.path.file_name().unwrap_or_default(),
                        path.file_name().unwrap_or_default(),
                    )
            }
        }
    }
}

/// True for `NAME`, `NAME.1`, `NAME_fsm`, `NAME_vm.2` and the like.
fn is_part_of(relation: &OsStr, file: &OsStr) -> bool {
    let Some(rest) = file.as_bytes().strip_prefix(relation.as_bytes()) else { return false };
    let forks: [&[u8]; 3] = [b"_fsm", b"_vm", b"_init"];
    let segment = forks.iter().find_map(|fork| rest.strip_prefix(*fork)).unwrap_or(rest);
    match segment {
        [] => true,
        [b'.', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// All rules of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// The rules, in the order of their paths.
    pub fn all(&self) -> &[Rule] {
        &self.0
    }

    /// The rule that holds for the file at this real path, by its number.
    pub fn find(&self, path: &Path) -> Option<usize> {
        let matching = self.0.iter().enumerate().filter(|(_, rule)| rule.matches(path));
        matching.max_by_key(|(_, rule)| rule.path.as_os_str().len()).map(|(i, _)| i)
    }

    /// The policy of the file at this real path.
    pub fn of(&self, path: &Path) -> Policy {
        self.find(path).map_or(Policy::Default, |i| self.0[i].policy.into())
    }

    /// Takes rules in, in place of those with their paths and of all that were made for one of these tables. One that
    /// says what holds without it is left out; of several with one path the last counts.
    pub fn set(&mut self, rules: Vec<Rule>, tables: &[String]) {
        let is_replaced = |old: &Rule| {
            let is_of = |table: &String| tables.contains(table);
            old.table.as_ref().is_some_and(is_of) || rules.iter().any(|new| new.path == old.path)
        };
        self.0.retain(|old| !is_replaced(old));
        let mut rules = rules;
        rules.reverse();
        // Rules of directories first: after them, a rule of something below may be superfluous.
        rules.sort_by(|a, b| a.path.cmp(&b.path));
        rules.dedup_by(|later, first| later.path == first.path);
        for rule in rules {
            let is_said = Policy::from(rule.policy) == self.of(&rule.path);
            if rule.policy != Choice::Default || !is_said {
                self.0.push(rule);
            }
        }
        self.0.sort_by(|a, b| a.path.cmp(&b.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(policy: Choice, path: &str) -> Rule {
        Rule { policy, path: path.into(), covers: Covers::Tree, table: None }
    }

    fn rules(all: &[(Choice, &str)]) -> Rules {
        let mut rules = Rules::default();
        rules.set(all.iter().map(|(policy, path)| rule(*policy, path)).collect(), &[]);
        rules
    }

    fn of(rules: &Rules, path: &str) -> Policy {
        rules.of(Path::new(path))
    }

    #[test]
    fn the_most_specific_rule_holds_also_for_files_to_come() {
        let rules =
            rules(&[(Choice::Keep, "/pg"), (Choice::None, "/pg/base/5"), (Choice::Default, "/pg/base/5/77")]);
        assert_eq!(of(&rules, "/pg/global/1"), Policy::Keep);
        assert_eq!(of(&rules, "/pg/base/5/1"), Policy::None);
        assert_eq!(of(&rules, "/pg/base/5/77"), Policy::Default);
        assert_eq!(of(&rules, "/pg/base/55/1"), Policy::Keep, "another directory");
        assert_eq!(of(&rules, "/pgx/1"), Policy::Default);
    }

    #[test]
    fn a_relation_is_its_segments_and_forks_and_nothing_else() {
        let relation = Rule { covers: Covers::Relation, ..rule(Choice::Keep, "/pg/base/5/163") };
        let mut rules = Rules::default();
        rules.set(vec![relation], &[]);
        for name in ["163", "163.1", "163.12", "163_fsm", "163_vm", "163_vm.1", "163_init"] {
            assert_eq!(of(&rules, &format!("/pg/base/5/{name}")), Policy::Keep, "{name}");
        }
        for name in ["1630", "163.", "163.x", "163_old", "16", "163_fsmx"] {
            assert_eq!(of(&rules, &format!("/pg/base/5/{name}")), Policy::Default, "{name}");
        }
        assert_eq!(of(&rules, "/pg/base/6/163"), Policy::Default);
    }

    #[test]
    fn a_rule_takes_the_place_of_the_one_before_and_default_is_none_at_all() {
        let mut rules = rules(&[(Choice::Keep, "/db/a"), (Choice::None, "/db/b")]);
        rules.set(vec![rule(Choice::None, "/db/a"), rule(Choice::Default, "/db/b")], &[]);
        assert_eq!(rules.all(), [rule(Choice::None, "/db/a")]);
        rules.set(vec![rule(Choice::Keep, "/db"), rule(Choice::Default, "/db/a")], &[]);
        assert_eq!(rules.all(), [rule(Choice::Keep, "/db"), rule(Choice::Default, "/db/a")]);
    }

    #[test]
    fn the_files_of_a_table_are_those_it_has_now() {
        let of_table = |path: &str| Rule { table: Some("d.s.t".into()), ..rule(Choice::Keep, path) };
        let mut rules = Rules::default();
        rules.set(vec![of_table("/pg/1"), of_table("/pg/2"), rule(Choice::Keep, "/pg/3")], &[]);
        rules.set(vec![of_table("/pg/2"), of_table("/pg/4")], &["d.s.t".into()]);
        let paths: Vec<_> = rules.all().iter().map(|rule| rule.path.to_str().unwrap_or_default()).collect();
        assert_eq!(paths, ["/pg/2", "/pg/3", "/pg/4"]);
        rules.set(vec![of_table("/pg/4"), rule(Choice::None, "/pg/4")], &[]);
        assert_eq!(rules.all().len(), 3);
        assert_eq!(of(&rules, "/pg/4"), Policy::None, "the last word counts");
    }
}
