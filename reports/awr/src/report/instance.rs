//! The instance's sections: caches, time model, wait classes, activity, its own I/O, segments.

use std::collections::BTreeMap;

use seawall_page::scale::{bytes, digits, time};
use seawall_page::{Block, Section, Table};

use super::words::{figure, percent};
use crate::period::{File, Period};

const ROWS: usize = 20;

/// Sizes of what keeps data in memory.
pub fn caches(period: &Period) -> Section {
    let mut section = Section::new("Cache Sizes");
    let sizes = [
        ("Buffer cache", "shared_buffers"),
        ("Log buffer", "wal_buffers"),
        ("Planner's idea of all caches", "effective_cache_size"),
        ("Work memory, each sort", "work_mem"),
        ("Buffer pool", "innodb_buffer_pool_size"),
        ("Log buffer", "innodb_log_buffer_size"),
        ("Redo log", "innodb_log_file_size"),
        ("Memory limit", "maxmemory"),
    ];
    let mut facts: Vec<_> = sizes
        .iter()
        .filter_map(|(shown, name)| Some(((*shown).to_owned(), size(period.settings.get(*name)?)?)))
        .collect();
    if let Some(part) = &period.seawall {
        let all = part.log.get("size").copied().unwrap_or(0.0);
        facts.push(("Seawall's log".into(), format!("{} ({})", bytes(all), part.medium_name)));
    }
    if let Some(cache) = &period.block_cache {
        let size = if cache.off.is_empty() { bytes(cache.end("size")) } else { "serves nothing".into() };
        facts.push(("Seawall's block cache".into(), format!("{size} ({})", cache.medium_name)));
    }
    section.blocks.extend((!facts.is_empty()).then_some(Block::Facts(facts)));
    section
}

/// `16384 8kB`, `4096 kB`, `134217728`: a number of units.
pub fn size(words: &str) -> Option<String> {
    let (number, unit) = words.split_once(' ').unwrap_or((words, "B"));
    let unit = match unit {
        "B" => 1.0,
        "kB" => 1024.0,
        "8kB" => 8192.0,
        "MB" => 1024.0 * 1024.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Some(if number > 0.0 { bytes(number * unit) } else { "no limit, or chosen by the server".into() })
}

/// What took how long.
pub fn time_model(period: &Period) -> Section {
    let mut section = Section::new("Time Model Statistics");
    if period.time_model.len() > 1 {
        section.words("By the database's own clocks. Rows are parts of each other: they do not add up.");
    }
    let mut table = Table::new("", &["<Statistic", "Time (s)", "% of DB time"]);
    for (name, seconds) in &period.time_model {
        table.row([name.clone(), digits(*seconds), percent(period.share(*seconds))]);
    }
    section.table(table);
    section
}

/// Events added up by class.
pub fn wait_classes(period: &Period) -> Section {
    let mut section = Section::new("Foreground Wait Classes");
    let mut classes: BTreeMap<&str, f64> = BTreeMap::new();
    period.events.iter().for_each(|e| *classes.entry(&e.class).or_default() += e.time_s);
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut table = Table::new("", &["<Wait class", "Time (s)", "% DB time", "Average active sessions"]);
    for (class, seconds) in classes {
        let active = digits(period.per_second(seconds));
        table.row([class.to_owned(), digits(seconds), percent(period.share(seconds)), active]);
    }
    section.table(table);
    section
}

/// Everything the database counts.
pub fn activity(period: &Period) -> Section {
    let mut section = Section::new("Instance Activity Statistics");
    let mut table =
        Table::new("", &["<Statistic, by the database's own name", "Total", "Per second", "Per transaction"]);
    for (name, total) in &period.activity {
        let transactions = period.transactions.filter(|n| *n > 0.0);
        table.row([
            name.clone(),
            digits(*total),
            digits(period.per_second(*total)),
            figure(transactions.map(|n| total / n)),
        ]);
    }
    section.table(table);
    section
}

/// I/O that the database counts.
pub fn io(period: &Period) -> Section {
    let mut section = Section::new("I/O by Function and File Type, by File");
    let by =
        [("By function and file type", "<Who / what", &period.io), ("By file", "<File", &period.io_files)];
    for (caption, first, files) in by {
        let head = [
            first,
            "Reads",
            "Read",
            "Mean",
            "Writes",
            "Written",
            "Mean",
            "Syncs",
            "Mean",
            "Other calls",
            "Mean",
        ];
        let mut table = Table::new(caption, &head);
        files.iter().take(ROWS).for_each(|file| table.row(io_row(file)));
        section.table(table);
    }
    section
}

fn io_row(file: &File) -> [String; 11] {
    let counter = |name: &str| file.counters.get(name).copied();
    let size = |name: &str| counter(name).map_or_else(|| "–".into(), bytes);
    let mean = |count: &str, ms: &str| {
        let timed = counter(ms).zip(counter(count)).filter(|(ms, n)| *ms > 0.0 && *n > 0.0);
        timed.map_or_else(|| "–".into(), |(ms, n)| time(ms * 1e6 / n))
    };
    [
        file.name.clone(),
        figure(counter("reads")),
        size("read_bytes"),
        mean("reads", "read_ms"),
        figure(counter("writes")),
        size("write_bytes"),
        mean("writes", "write_ms"),
        figure(counter("syncs")),
        mean("syncs", "sync_ms"),
        figure(counter("misc")),
        mean("misc", "misc_ms"),
    ]
}

/// Tables by what they read from outside the buffer cache, and by what was changed.
pub fn segments(period: &Period) -> Section {
    let mut section = Section::new("Segments");
    let head = ["<Table", "Table blocks read", "hit %", "Index blocks read", "hit %"];
    let mut reads = Table::new("By physical reads", &head);
    for file in period.files.iter().take(ROWS) {
        reads.row([
            file.name.clone(),
            figure(file.counters.get("heap_blks_read").copied()),
            hit(file, "heap_blks"),
            figure(file.counters.get("idx_blks_read").copied()),
            hit(file, "idx_blks"),
        ]);
    }
    let head = [
        "<Table",
        "Inserted",
        "Updated",
        "of these HOT %",
        "Deleted",
        "Rows changed/s",
        "Whole scans",
        "Vacuums",
    ];
    let mut changes = Table::new("By rows changed", &head);
    period.changed.iter().take(ROWS).for_each(|file| changes.row(change_row(period, file)));
    section.table(reads).table(changes);
    section
}

fn change_row(period: &Period, file: &File) -> [String; 8] {
    let counter = |name: &str| file.counters.get(name).copied();
    let sum = |names: &[&str]| names.iter().filter_map(|name| counter(name)).sum::<f64>();
    let hot = counter("n_tup_hot_upd").zip(counter("n_tup_upd").filter(|n| *n > 0.0));
    [
        file.name.clone(),
        figure(counter("n_tup_ins")),
        figure(counter("n_tup_upd")),
        percent(hot.map(|(hot, all)| hot * 100.0 / all)),
        figure(counter("n_tup_del")),
        digits(period.per_second(sum(&["n_tup_ins", "n_tup_upd", "n_tup_del"]))),
        figure(counter("seq_scan")),
        digits(sum(&["vacuum_count", "autovacuum_count"])),
    ]
}

fn hit(file: &File, what: &str) -> String {
    let of = |name: &str| file.counters.get(&format!("{what}_{name}")).copied().unwrap_or(0.0);
    let all = of("hit") + of("read");
    percent((all > 0.0).then(|| of("hit") * 100.0 / all))
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_the_units_of_settings() {
        assert_eq!(size("16384 8kB").as_deref(), Some("128 MiB"));
        assert_eq!(size("4096 kB").as_deref(), Some("4 MiB"));
        assert_eq!(size("134217728").as_deref(), Some("128 MiB"));
        assert_eq!(size("-1 8kB").as_deref(), Some("no limit, or chosen by the server"));
        assert_eq!(size("7 ms"), None);
    }
}
