//! The block cache's part of a period.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use crate::block_cache::{CACHE, FILE, RELATION, SIZE};
use crate::delta::{Delta, Deltas};

const FILES: usize = 30;

/// What the block cache did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockCache {
    /// Its file.
    pub path: String,
    /// Its medium in one word.
    pub medium_name: String,
    /// Why it serves nothing, at the end; empty while it does.
    pub off: String,
    /// As it was at the end: `size`, `block_bytes`, `blocks`, `blocks_used`, `files`, `files_not_served`.
    pub at_end: BTreeMap<String, f64>,
    /// Blocks that were read from it.
    pub hits: f64,
    /// Reads that it was asked for and could not answer.
    pub misses: f64,
    /// Blocks that were written to it.
    pub admitted: f64,
    /// Checksums that failed.
    pub failures: f64,
    /// What other sizes would have given, smallest first.
    pub sizes: Vec<CacheSize>,
    /// Files, those first that were read most.
    pub files: Vec<CachedFile>,
}

/// A size that the cache could have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheSize {
    /// In percent of the present one.
    pub percent: u32,
    /// Bytes.
    pub size: f64,
    /// Reads that were sampled.
    pub reads: f64,
    /// Those that would have been hits.
    pub hits: f64,
}

/// A file that was read through the cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CachedFile {
    /// Its path, or the table's name where that is known.
    pub name: String,
    /// What the database uses it for.
    pub class: String,
    /// Blocks of it that were hits, about.
    pub hits: f64,
    /// Reads of it that went to the disk, about.
    pub misses: f64,
    /// Why it was not served at the end; empty if it was.
    pub not_served: String,
}

/// Its part, if there was one.
pub fn part(deltas: &Deltas) -> Option<BlockCache> {
    let (_, cache) = deltas.of(CACHE).next()?;
    let (fact, counter) = (|name| cache.fact(name), |name| cache.counter(name));
    Some(BlockCache {
        path: fact("path"),
        medium_name: fact("medium_name"),
        off: fact("off"),
        at_end: cache.gauges.clone(),
        hits: counter("hits"),
        misses: counter("misses"),
        admitted: counter("admitted"),
        failures: counter("failures"),
        sizes: sizes(deltas),
        files: files(deltas),
    })
}

fn sizes(deltas: &Deltas) -> Vec<CacheSize> {
    let size = |(item, delta): (&str, &Delta)| {
        let size = delta.gauge("size");
        let (reads, hits) = (delta.counter("reads"), delta.counter("hits"));
        Some(CacheSize { percent: item.parse().ok()?, size, reads, hits })
    };
    let mut sizes: Vec<_> = deltas.of(SIZE).filter_map(size).filter(|size| size.reads > 0.0).collect();
    sizes.sort_by_key(|size| size.percent);
    sizes
}

fn files(deltas: &Deltas) -> Vec<CachedFile> {
    let relation =
        |(item, delta): (&str, &Delta)| Some((below(item).to_owned(), delta.facts.get("relation")?.clone()));
    let relations: BTreeMap<String, String> = deltas.of(RELATION).filter_map(relation).collect();
    let file = |(_, delta): (&str, &Delta)| {
        let fact = |name: &str| delta.facts.get(name).cloned().unwrap_or_default();
        CachedFile {
            name: table_of(&fact("path"), &relations).unwrap_or_else(|| fact("path")),
            class: fact("class"),
            hits: delta.counter("hits"),
            misses: delta.counter("misses"),
            not_served: fact("not_served"),
        }
    };
    let is_telling = |file: &CachedFile| file.hits + file.misses > 0.0 || !file.not_served.is_empty();
    let mut tables: BTreeMap<String, CachedFile> = BTreeMap::new();
    // A large table has several files.
    for file in deltas.of(FILE).map(file).filter(is_telling) {
        match tables.entry(file.name.clone()) {
            Entry::Vacant(place) => drop(place.insert(file)),
            Entry::Occupied(mut table) => {
                table.get_mut().hits += file.hits;
                table.get_mut().misses += file.misses;
                if table.get().not_served.is_empty() {
                    table.get_mut().not_served = file.not_served;
                }
            }
        }
    }
    let mut files: Vec<_> = tables.into_values().collect();
    files.sort_by(|a, b| (b.hits + b.misses).total_cmp(&(a.hits + a.misses)));
    files.truncate(FILES);
    files
}

/// The path of a relation's file below its database's directory or its tablespace's.
fn below(filepath: &str) -> &str {
    let tablespace = filepath.strip_prefix("pg_tblspc/").and_then(|rest| rest.split_once('/'));
    tablespace.map_or(filepath, |(_, rest)| rest)
}

/// The table or index whose file this is, as PostgreSQL or MariaDB names files.
fn table_of(path: &str, relations: &BTreeMap<String, String>) -> Option<String> {
    let mut parts = path.rsplit('/');
    let (file, dir, above) = (parts.next()?, parts.next()?, parts.next().unwrap_or(""));
    if let Some(table) = file.strip_suffix(".ibd") {
        return Some(format!("{dir}.{table}"));
    }
    // Segments are numbered behind a dot, other forks named behind an underline.
    let (node, fork) = file.split_once(['.', '_']).unwrap_or((file, ""));
    let release = parts.next().unwrap_or("");
    let candidates =
        [format!("{dir}/{node}"), format!("{above}/{dir}/{node}"), format!("{release}/{above}/{dir}/{node}")];
    let name = candidates.iter().find_map(|candidate| relations.get(candidate))?;
    let is_segment = fork.chars().all(|c| c.is_ascii_digit());
    Some(if is_segment {
        name.clone()
    } else {
        format!("{name} ({})", fork.split('.').next().unwrap_or(fork))
    })
}

impl BlockCache {
    /// A number of the end, 0 if it is not known.
    pub fn end(&self, name: &str) -> f64 {
        self.at_end.get(name).copied().unwrap_or(0.0)
    }

    /// Reads that it answered, in percent.
    pub fn hit_percent(&self) -> Option<f64> {
        share(self.hits, self.misses)
    }

    /// Its blocks that were in use, in percent.
    pub fn used_percent(&self) -> Option<f64> {
        let blocks = self.end("blocks");
        (blocks > 0.0).then(|| self.end("blocks_used") * 100.0 / blocks)
    }

    /// Of so many percent of its size.
    pub fn sized(&self, percent: u32) -> Option<&CacheSize> {
        self.sizes.iter().find(|size| size.percent == percent)
    }
}

impl CacheSize {
    /// Hits for each hundred reads.
    pub fn hit_percent(&self) -> f64 {
        self.hits * 100.0 / self.reads.max(1.0)
    }
}

impl CachedFile {
    /// Reads of it that were answered, in percent.
    pub fn hit_percent(&self) -> Option<f64> {
        share(self.hits, self.misses)
    }
}

/// Of reads that it was asked for, those that it answered, in percent.
pub(crate) fn share(hits: f64, misses: f64) -> Option<f64> {
    (hits + misses > 0.0).then(|| hits * 100.0 / (hits + misses))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Reading, Snapshot};

    fn snapshot(id: i64, hits: f64, sampled: (f64, f64)) -> Snapshot {
        let mut snapshot = Snapshot { id, ..Snapshot::default() };
        let cache = Reading::new(CACHE, "", "e").counter("hits", hits).counter("misses", 100.0);
        snapshot.add(CACHE, true, vec![cache.gauge("blocks", 8.0).gauge("blocks_used", 2.0)]);
        let size = |percent: &str| {
            let size = Reading::new(SIZE, percent, "e").counter("reads", sampled.0);
            size.counter("hits", sampled.1).gauge("size", 1e9)
        };
        snapshot.add(SIZE, true, vec![size("200"), size("50")]);
        let file = |id: &str, hits: f64| Reading::new(FILE, id, "z").counter("hits", hits).fact("path", id);
        snapshot.add(FILE, true, vec![file("idle", 7.0), file("few", hits / 10.0), file("many", hits)]);
        snapshot
    }

    #[test]
    fn shares_are_those_of_the_period_and_not_of_all_time() {
        let deltas =
            Deltas::over(&[snapshot(1, 1000.0, (500.0, 500.0)), snapshot(2, 1300.0, (700.0, 550.0))]);
        let part = part(&deltas).expect("a cache");
        assert_eq!((part.hits, part.misses, part.hit_percent()), (300.0, 0.0, Some(100.0)));
        assert_eq!(part.used_percent(), Some(25.0));
        assert_eq!(part.sizes.iter().map(|s| s.percent).collect::<Vec<_>>(), [50, 200]);
        assert_eq!(part.sized(50).expect("half").hit_percent(), 25.0, "50 of the 200 since");
        assert_eq!(part.files.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["many", "few"]);
    }

    #[test]
    fn files_are_tables_where_the_database_says_which() {
        let relations = [
            ("base/5/16397", "public.accounts"),
            ("global/1262", "pg_catalog.pg_database"),
            ("PG_15_202209061/5/16500", "public.far"),
        ];
        let relations = relations.map(|(path, name)| (path.to_owned(), name.to_owned())).into();
        for (path, table) in [
            ("/srv/pg/base/5/16397", Some("public.accounts")),
            ("/srv/pg/base/5/16397.12", Some("public.accounts")),
            ("/srv/pg/base/5/16397_vm", Some("public.accounts (vm)")),
            ("/srv/pg/global/1262", Some("pg_catalog.pg_database")),
            ("/mnt/ts/PG_15_202209061/5/16500", Some("public.far")),
            ("/srv/pg/base/6/16397", None),
            ("/var/lib/mysql/shop/orders.ibd", Some("shop.orders")),
            ("/srv/x.db", None),
            ("", None),
        ] {
            assert_eq!(table_of(path, &relations).as_deref(), table, "{path}");
        }
        assert_eq!(below("pg_tblspc/16400/PG_15_202209061/5/16500"), "PG_15_202209061/5/16500");
    }

    #[test]
    fn the_files_of_a_table_are_added_up() {
        let snapshot = |hits: f64| {
            let mut snapshot = snapshot(1, 0.0, (1.0, 1.0));
            snapshot.readings.retain(|reading| reading.kind != FILE);
            let file = |id: &str, path: &str| {
                Reading::new(FILE, id, "z")
                    .counter("hits", hits)
                    .counter("misses", 2.0 * hits)
                    .fact("path", path)
            };
            snapshot.readings.extend([file("1", "/d/base/5/7"), file("2", "/d/base/5/7.1")]);
            let relation = Reading::new(RELATION, "base/5/7", "").fact("relation", "public.t");
            snapshot.add(RELATION, true, vec![relation]);
            snapshot
        };
        let part = part(&Deltas::over(&[snapshot(10.0), snapshot(30.0)])).expect("a cache");
        let [table] = part.files.as_slice() else { panic!("{:?}", part.files) };
        assert_eq!((table.name.as_str(), table.hits, table.misses), ("public.t", 40.0, 80.0));
    }

    #[test]
    fn without_a_cache_there_is_no_part() {
        assert!(part(&Deltas::default()).is_none());
    }
}
