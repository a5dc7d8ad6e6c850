//! The block cache's section, and what another size of it would give.

use seawall_page::scale::{bytes, digits, time};
use seawall_page::{Block, Note, Section, Table, Weight};

use super::words::{figure, percent};
use crate::period::{BlockCache, CachedFile, Period};

const FILES: usize = 20;

/// What it held, answered and wrote.
pub fn part(period: &Period) -> Section {
    let mut section = Section::new("Seawall: Block Cache");
    let Some(cache) = &period.block_cache else { return section };
    if !cache.off.is_empty() {
        let title = "The block cache serves nothing".into();
        let lines = vec![cache.off.clone()];
        section.blocks.push(Block::Note(Note { weight: Weight::Warn, title, lines }));
    }
    section.words(
        "All reads are counted, by file one in 64, so a figure below some thousands says little; a file \
         counts from when it was entered.",
    );
    section.blocks.push(Block::Facts(facts(period, cache)));
    let head = ["<File", "<Class", "Answered %", "Hits, about", "Reads of the disk, about", "<Not served"];
    let mut files = Table::new("By file", &head);
    cache.files.iter().take(FILES).for_each(|file| files.row(file_row(file)));
    section.table(files);
    section
}

fn facts(period: &Period, cache: &BlockCache) -> Vec<(String, String)> {
    let per_second = |n: f64| digits(period.per_second(n));
    let used = bytes(cache.end("blocks_used") * cache.end("block_bytes"));
    let mut facts = vec![
        (
            "Cache".into(),
            format!("{} ({}), blocks of {}", cache.path, cache.medium_name, bytes(cache.end("block_bytes"))),
        ),
        (
            "Size, in use at the end".into(),
            format!("{}, {used} ({} %)", bytes(cache.end("size")), percent(cache.used_percent())),
        ),
        (
            "Reads answered".into(),
            format!(
                "{} % ({} hits a second, {} reads of the disk a second)",
                percent(cache.hit_percent()),
                per_second(cache.hits),
                per_second(cache.misses)
            ),
        ),
        ("A hit, a read of the disk took".into(), took(period)),
        (
            "Admitted".into(),
            format!(
                "{} blocks, {}/s written to its medium",
                digits(cache.admitted),
                bytes(period.per_second(cache.admitted * cache.end("block_bytes")))
            ),
        ),
        (
            "Files at the end".into(),
            format!(
                "{} entered, {} of them not served",
                digits(cache.end("files")),
                digits(cache.end("files_not_served"))
            ),
        ),
    ];
    if cache.failures > 0.0 {
        facts.push(("Wrong checksums".into(), format!("{} blocks, dropped", digits(cache.failures))));
    }
    facts
}

/// Means of the two waits.
pub fn means(period: &Period) -> [Option<f64>; 2] {
    let mean = |name: &str| {
        let wait = period.seawall.as_ref()?.waits.iter().find(|wait| wait.name == name)?;
        (wait.count > 0.0).then(|| wait.mean_ns())
    };
    ["db flash cache single block physical read", "db file sequential read"].map(mean)
}

fn took(period: &Period) -> String {
    let [hit, disk] = means(period).map(|ns| ns.map_or_else(|| "–".into(), time));
    format!("{hit}, {disk} (means)")
}

fn file_row(file: &CachedFile) -> [String; 6] {
    let about = |n: f64| figure(Some(n));
    [
        if file.name.is_empty() { "(not found yet)".into() } else { file.name.clone() },
        file.class.clone(),
        percent(file.hit_percent()),
        about(file.hits),
        about(file.misses),
        file.not_served.clone(),
    ]
}

/// What other sizes would have given.
pub fn advisory(section: &mut Section, period: &Period) {
    let Some(cache) = period.block_cache.as_ref().filter(|cache| !cache.sizes.is_empty()) else { return };
    let sampled = cache.sizes.iter().map(|size| size.reads).fold(0.0, f64::max);
    section.words(format!(
        "Block cache: all reads of one block in 64 ({} in this period) went through small caches that stand \
         for these sizes and choose as it does. The page cache may have blocks that a smaller cache would \
         lose; below some thousands of reads this says little.",
        digits(sampled)
    ));
    let head = ["<Size of the block cache", "", "Reads answered %", "Reads of the disk, to now's"];
    let mut table = Table::new("Block cache advisory", &head);
    let missed = |percent: f64| 100.0 - percent;
    let now = cache.sized(100).map(|size| missed(size.hit_percent())).filter(|missed| *missed > 0.0);
    for size in &cache.sizes {
        let ratio = now.map_or_else(|| "–".into(), |now| format!("×{:.2}", missed(size.hit_percent()) / now));
        let word = match size.percent {
            100 => "now".into(),
            other => format!("×{}", f64::from(other) / 100.0),
        };
        table.row([bytes(size.size), word, percent(Some(size.hit_percent())), ratio]);
    }
    section.table(table);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::period::CacheSize;

    fn period() -> Period {
        let size = |percent: u32, hits: f64| CacheSize {
            percent,
            size: 1073741824.0 * f64::from(percent) / 100.0,
            reads: 2000.0,
            hits,
        };
        let file = CachedFile {
            name: "/d/base/5/16397".into(),
            class: "data file".into(),
            hits: 6400.0,
            misses: 6400.0,
            not_served: String::new(),
        };
        let cache = BlockCache {
            path: "/p.cache".into(),
            medium_name: "pmem".into(),
            hits: 9000.0,
            misses: 1000.0,
            at_end: [("size", 1e9), ("block_bytes", 8192.0), ("blocks", 100.0), ("blocks_used", 63.0)]
                .map(|(name, n)| (name.to_owned(), n))
                .into(),
            sizes: vec![size(50, 1000.0), size(100, 1600.0), size(200, 1900.0)],
            files: vec![file],
            ..BlockCache::default()
        };
        Period { elapsed_s: 10.0, block_cache: Some(cache), ..Period::default() }
    }

    fn text(sections: Vec<Section>) -> String {
        seawall_page::text(&seawall_page::Document { sections, ..Default::default() })
    }

    #[test]
    fn the_section_has_shares_rates_and_files() {
        let text = text(vec![part(&period())]);
        for wanted in ["90.0 % (900 hits a second, 100 reads", "(63.0 %)", "/d/base/5/16397", "50.0", "about"]
        {
            assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
        }
        assert!(!text.contains("serves nothing"), "{text}");
    }

    #[test]
    fn a_cache_that_is_off_says_so_first() {
        let mut period = period();
        period.block_cache.as_mut().expect("one").off = "it was switched off".into();
        let text = text(vec![part(&period)]);
        assert!(text.contains("serves nothing") && text.contains("it was switched off"), "{text}");
    }

    #[test]
    fn the_advisory_sets_each_size_against_the_present_one() {
        let mut section = Section::new("Advisories");
        advisory(&mut section, &period());
        let text = text(vec![section]);
        let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or("").to_owned();
        assert!(row("×0.5").contains("50.0") && row("×0.5").contains("×2.50"), "{text}");
        assert!(row(" now ").contains("80.0") && row(" now ").contains("×1.00"), "{text}");
        assert!(row("×2 ").contains("95.0") && row("×2 ").contains("×0.25"), "{text}");
    }
}
