//! `docs/results/RESULTS.md`: what tried to break Seawall, how often, and what came of it. Written from the campaigns'
//! own results and never by hand; a campaign whose result is missing or makes no sense is said to be.
//!
//! Input: a directory with the results that [`CAMPAIGNS`] names, as `vm.json` (any of them), and `powercuts-*.json` of campaigns that were carried out apart; and the page as it is, whose section stays where there is
//! no new result. Output: the page. Not handled here: whether the results are of this revision; the page says when the
//! newest of each kind was written.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

/// The page, from the root of the tree.
pub const RESULTS_PAGE: &str = "docs/results/RESULTS.md";

const HEAD: &str = "# Results\n\nWhat tried to break the promises of [the failure model](../internals/FAILURE_MODEL.md), how often, and \
what came of it. This page is written by `cargo run -p xtask -- results` from what the campaigns said; `make soak` \
runs them. A figure of nought under *lost* or *violations* counts only beside the control that shows that the same \
test finds a loss where there is one.\n";

/// One campaign: the file of its result, and what is told of it.
struct Campaign {
    file: &'static str,
    title: &'static str,
    about: &'static str,
    rows: fn(&Value) -> Option<Vec<Vec<String>>>,
}

const CAMPAIGNS: [Campaign; 12] = [
    Campaign {
        file: "campaign.json",
        title: "Simulated crash points",
        about: "The stages unmodified between a simulated medium and simulated disks, under schedules that a seed \
                decides; a power cut at every persistence point, recovery, and a second cut inside the recovery \
                ([`proof/sim`](../../proof/sim/src/lib.rs)).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-block.json",
        title: "Simulated crash points, the log on a block device",
        about: "The same stages and schedules with a journal on a simulated device that keeps any subset of what was \
                not flushed; a device write takes the place of some hundred flushes (`campaign --block`).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-mirror.json",
        title: "Simulated crash points, the log on two devices",
        about: "The same with a mirrored journal: one device dies at any of its writes, and is stale or gone when the \
                power is back, or one had confirmed what it then has not (`campaign --mirror`).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-spill.json",
        title: "Simulated crash points, a spill area behind the log",
        about: "A small pool in memory whose full segments are copied to a simulated disk that keeps any subset of the \
                sectors under way, and fails at times (`campaign --spill`).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-disk.json",
        title: "Simulated crash points, guests whose disks are in the log",
        about: "What `seawall disk` carries out for guests whose requests overlap no other under way, its process killed at any \
                step and the requests carried out again by the next one, against a model of a disk (`campaign --disk`).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-disk-block.json",
        title: "Simulated crash points, guests whose disks are in a log on a block device",
        about: "The same with a journal on a simulated device (`campaign --disk --block`).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-names.json",
        title: "Simulated crash points, names in the log",
        about: "Processes make, write, sync, rename, exchange, link and remove small files in one or two directories \
                whose names are in the log, on a simulated file system that keeps changes of names in order; a cut \
                leaves any first part of what was not synced (`campaign --names`).",
        rows: simulated,
    },
    Campaign {
        file: "campaign-names-block.json",
        title: "Simulated crash points, names in a log on a block device",
        about: "The same with a journal on a simulated device (`campaign --names --block`).",
        rows: simulated,
    },
    Campaign {
        file: "mutants.json",
        title: "Mutation",
        about: "Each flush, fence, checksum check, watermark, real sync and row of the decision table is broken \
                once; something must notice ([`MUTANTS`](../../xtask/src/mutate/list.rs)). Control: the run with \
                nothing broken notices nothing.",
        rows: mutants,
    },
    Campaign {
        file: "powercuts.json",
        title: "Power cuts of real databases",
        about: "A real file system on a disk that loses any part of what was not flushed, cut under full load \
                ([`proof/powercut`](../../proof/powercut/src/main.rs)). The log's medium is memory outside the machine, which \
                survives by construction; *log on the disk* has the log in a file there too, cut like everything else. A round \
                whose database could not be checked in time shows nothing, and is counted apart.\n\n\
                * **Controls.** `unsafe` has durability switched off, `logless` recovers without the log, `synced` is the bare \
                database with its fsyncs.\n\
                * **`atomic`** is without full pages or doublewrite buffer under that policy; its control is `torn`, the same \
                without Seawall, where a database ends with torn pages and its check with a problem.\n\
                * **On the mount** the database runs bare on a directory of `seawall mount`; in some rounds the mount's process is \
                killed first.\n\
                * **In a guest** it runs bare in a virtual machine (QEMU), whose image `seawall disk` serves; in the controls \
                `synced` and `unsafe` QEMU serves it, with its flushes and without. The host is cut, with all three, and in some \
                rounds `seawall disk` or the daemon is killed first.",
        rows: power_cuts,
    },
    Campaign {
        file: "vm.json",
        title: "Power cuts of a virtual machine",
        about: "PostgreSQL and SQLite in a machine with persistent memory (ext4 and XFS in DAX mode, MAP_SYNC) and a \
                disk with a volatile write cache; in some chains the log is small and has a spill area on that disk, in \
                others it lies on that disk alone; the emulator is killed under load, the ledger stands outside \
                ([`proof/vmtest`](../../proof/vmtest/src/main.rs)). Emulated devices: it shows that a crash is \
                survived, not what a real module's flushes do.",
        rows: machine,
    },
    Campaign {
        file: "vm-keepers.json",
        title: "Power cuts of a host whose log others keep",
        about: "Three virtual machines, each with a keeper, two of which confirm a commit: PostgreSQL's is killed under load, \
                at times some seconds after its network, with what its keeper had in memory and the disks had not flushed. \
                The volume goes to the next one, which takes the log over, and is the next to be cut \
                ([how](../../proof/vmtest/src/hosts.rs)).",
        rows: machine,
    },
];

/// The page, from the results in `dir`, and where there is none from the page as it is.
pub fn results_page(dir: &Path, now: &str) -> String {
    let page = CAMPAIGNS.iter().fold(HEAD.to_owned(), |page, campaign| page + &campaign.section(dir, now));
    page + &others(now)
}

/// Sections of the page that are no campaign's: written by hand, and kept.
fn others(now: &str) -> String {
    let sections = now.split("\n## ").skip(1);
    let is_known = |section: &&str| CAMPAIGNS.iter().any(|c| section.lines().next() == Some(c.title));
    let kept =
        sections.filter(|section| !is_known(section)).map(|section| format!("\n## {}\n", section.trim_end()));
    kept.collect()
}

impl Campaign {
    fn section(&self, dir: &Path, now: &str) -> String {
        let (mut found, mut newest) = (None, None);
        for path in std::iter::once(dir.join(self.file)).chain(parts(dir, self.file)) {
            let Some(part) = read(&path) else { continue };
            match &mut found {
                Some(whole) => add_totals(whole, &part),
                None => found = Some(part),
            }
            newest = newest.max(std::fs::metadata(&path).and_then(|m| m.modified()).ok());
        }
        let told = found.as_ref().and_then(self.rows).map(|rows| table(&rows) + &written(newest));
        let former = || if dir.join(self.file).exists() { None } else { self.figures_of(now) };
        let body = told
            .or_else(former)
            .unwrap_or_else(|| format!("No result: `{}` is missing or is not one.\n", self.file));
        format!("\n## {}\n\n{}\n\n{body}", self.title, self.about)
    }

    /// What a page says of this campaign, from its table on.
    fn figures_of(&self, page: &str) -> Option<String> {
        let (_, section) = page.split_once(&format!("## {}\n", self.title))?;
        let section = section.split("\n## ").next()?;
        Some(section[section.find("\n| ")? + 1..].to_owned())
    }
}

fn read(path: &Path) -> Option<Value> {
    std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok())
}

/// The results that were written apart: of `powercuts.json` those called `powercuts-*.json`.
fn parts(dir: &Path, file: &str) -> Vec<PathBuf> {
    let Some(stem) = file.strip_suffix(".json").filter(|stem| *stem == "powercuts") else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_part = |name: &str| name.starts_with(&format!("{stem}-")) && name.ends_with(".json");
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_part))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Adds another campaign's totals: those of the same database and side to the same row.
fn add_totals(whole: &mut Value, part: &Value) {
    let (Some(rows), Some(more)) = (whole["totals"].as_array_mut(), part["totals"].as_array()) else {
        return;
    };
    for total in more {
        let same = |row: &&mut Value| {
            ["database", "side"].iter().all(|name| row[*name] == total[*name])
                && front(row) == front(total)
                && log_on_disk(row) == log_on_disk(total)
        };
        let Some(row) = rows.iter_mut().find(same) else {
            rows.push(total.clone());
            continue;
        };
        for (name, value) in total.as_object().into_iter().flatten().filter(|(_, value)| value.is_u64()) {
            row[name] = (row[name].as_u64().unwrap_or(0) + value.as_u64().unwrap_or(0)).into();
        }
    }
}

/// What distinguishes rounds whose database ran on a mount, where controls without Seawall are the same, or in a guest, where
/// they are not.
fn front(total: &Value) -> &'static str {
    let is_bare = matches!(total["side"].as_str(), Some("synced" | "unsafe" | "torn"));
    match total["front"].as_str() {
        Some("mount") if !is_bare => " on the mount",
        Some("disk") => " in a guest",
        _ => "",
    }
}

/// True for rounds whose log lay on the disk that was cut; controls without Seawall have none.
fn log_on_disk(total: &Value) -> bool {
    total["medium"] == "disk" && !matches!(total["side"].as_str(), Some("synced" | "unsafe" | "torn"))
}

/// The first row is the head.
fn table(rows: &[Vec<String>]) -> String {
    let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
    let rule = |head: &Vec<String>| format!("|{}\n", "---|".repeat(head.len()));
    let head = rows.first().map_or_else(String::new, |head| line(head) + &rule(head));
    rows.iter().skip(1).fold(head, |out, row| out + &line(row))
}

/// The line that says when a result was written; none if that is not known.
fn written(at: Option<SystemTime>) -> String {
    let since = at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or_else(String::new, |since| format!("\nWritten {}.\n", day(since)))
}

/// The day so long after 1 January 1970, as days and years are named everywhere (Howard Hinnant's civil_from_days).
fn day(since: Duration) -> String {
    let days = since.as_secs() / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + u64::from(month <= 2))
}

/// A number with separators, or the text itself.
fn shown(value: &Value) -> String {
    let Some(number) = value.as_f64() else { return value.as_str().unwrap_or("–").to_owned() };
    let whole = format!("{number:.0}");
    let digits: Vec<char> = whole.chars().rev().collect();
    let groups: Vec<String> = digits.chunks(3).map(|group| group.iter().rev().collect()).collect();
    groups.into_iter().rev().collect::<Vec<_>>().join(",")
}

/// A row for each field of an object.
fn fields(of: &Value) -> Option<Vec<Vec<String>>> {
    let rows = of.as_object()?.iter().filter(|(_, value)| value.is_number());
    Some(rows.map(|(name, value)| vec![name.replace('_', " "), shown(value)]).collect())
}

/// What the simulator counts, in its order of importance.
const SIMULATED: [(&str, &str); 11] = [
    ("points", "crash points explored"),
    ("points_in_recovery", "of them within a recovery"),
    ("cuts", "power cuts gone through, recovery and all"),
    ("recoveries_cut", "recoveries that were cut in turn"),
    ("damaged", "images with planted damage"),
    ("refused", "of them refused; the others recovered correctly"),
    ("poisoned", "images with an unreadable line"),
    ("operations", "operations begun"),
    ("kills", "processes killed"),
    ("takeovers", "daemons that took a live log over"),
    ("replayed", "records replayed"),
];
/// What is counted of a log on devices, and shown where it came to that.
const ON_DEVICES: [(&str, &str); 4] = [
    ("device_failures", "writes to a device that failed"),
    ("lies_found", "power cuts of a device that had lied about its flush, and was found out"),
    ("lies_believed", "power cuts of one whose lie looked like writes that were under way"),
    ("lies_outvoted", "power cuts of a mirrored log one of whose devices had lied"),
];

fn simulated(result: &Value) -> Option<Vec<Vec<String>>> {
    let mut rows = vec![vec!["what".into(), "how often".into()]];
    rows.extend(SIMULATED.iter().map(|(key, text)| vec![(*text).into(), shown(&result["counts"][*key])]));
    let of_devices = ON_DEVICES.iter().map(|(key, text)| (text, &result["counts"][*key]));
    let happened = of_devices.filter(|(_, count)| count.as_u64().is_some_and(|count| count > 0));
    rows.extend(happened.map(|(text, count)| vec![(*text).into(), shown(count)]));
    rows.push(vec!["crash points a second".into(), shown(&result["points_per_second"])]);
    rows.push(vec!["**promises broken**".into(), result["violations"].as_array()?.len().to_string()]);
    Some(rows)
}

fn mutants(result: &Value) -> Option<Vec<Vec<String>>> {
    let fates = result.as_array().or_else(|| result["fates"].as_array())?;
    let is = |fate: &&Value, name: &str| !fate[name].is_null();
    let killed = fates.iter().filter(|fate| is(fate, "killed_by")).count();
    let needless = fates.iter().filter(|fate| is(fate, "needless") && !is(fate, "killed_by"));
    let survived = fates.iter().filter(|fate| !is(fate, "killed_by") && !is(fate, "needless"));
    let mut rows = vec![
        vec!["what".into(), "how many".into()],
        vec!["broken, one at a time".into(), fates.len().to_string()],
        vec!["noticed".into(), killed.to_string()],
    ];
    rows.extend(
        needless.map(|fate| vec![format!("needless: {}", shown(&fate["mutant"])), shown(&fate["needless"])]),
    );
    rows.push(vec!["**survived**".into(), survived.clone().count().to_string()]);
    rows.extend(survived.map(|fate| vec!["survivor".into(), shown(&fate["mutant"])]));
    Some(rows)
}

fn power_cuts(result: &Value) -> Option<Vec<Vec<String>>> {
    let names = [
        "rounds",
        "cuts",
        "sectors_lost",
        "acknowledged",
        "lost",
        "rounds_with_problems",
        "rounds_unchecked",
    ];
    let mut rows = vec![
        [
            "database",
            "side",
            "rounds",
            "cuts",
            "sectors lost",
            "commits acknowledged",
            "**lost**",
            "rounds with a problem",
            "rounds not checked in time",
        ]
        .map(String::from)
        .to_vec(),
    ];
    for total in result["totals"].as_array()? {
        let log = if log_on_disk(total) { ", log on the disk" } else { "" };
        let mut row = vec![shown(&total["database"]), shown(&total["side"]) + front(total) + log];
        row.extend(names.iter().map(|name| shown(&total[*name])));
        rows.push(row);
    }
    Some(rows)
}

fn machine(result: &Value) -> Option<Vec<Vec<String>>> {
    let mut rows = vec![vec!["with Seawall".into(), "how many".into()]];
    rows.extend(fields(&result["totals"])?);
    rows.push(vec!["**failures**".into(), result["totals"]["failures"].as_array()?.len().to_string()]);
    let proofs = [
        ("counter_proof", "control, not synced"),
        ("logless", "control, without the keepers' log"),
        ("control", "control, synced"),
    ];
    for (name, title) in proofs {
        let proof = &result[name];
        if proof["ran"] == true {
            let text =
                format!("{} acknowledged, {} lost", shown(&proof["acknowledged"]), shown(&proof["lost"]));
            rows.push(vec![title.into(), text]);
        }
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of a test's own, gone with it.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("seawall-results-{test}-{}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a directory");
            Self(path)
        }

        fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_newest_of_several_results_says_when_they_were_written() {
        let dir = Scratch::new("dates");
        // No `powercuts.json`: all of them were carried out apart.
        for (name, seconds) in [("a", 1_000_000_000), ("b", 1_600_000_000), ("c", 1_300_000_000)] {
            let file =
                std::fs::File::create(dir.path().join(format!("powercuts-{name}.json"))).expect("made");
            std::io::Write::write_all(&mut &file, br#"{"totals":[]}"#).expect("written");
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).expect("dated");
        }
        let page = results_page(dir.path(), "");
        let dates: Vec<_> = page.lines().filter(|line| line.starts_with("Written")).collect();
        assert_eq!(dates, ["Written 2020-09-13."], "{page}");
        assert_eq!(written(None), "", "rather nothing than the epoch");
    }

    #[test]
    fn what_has_no_new_result_stays() {
        let dir = Scratch::new("stays");
        let vm = |lost: u32| format!(r#"{{"totals":{{"lost":{lost},"failures":[]}}}}"#);
        std::fs::write(dir.path().join("vm.json"), vm(1)).expect("written");
        std::fs::write(dir.path().join("powercuts.json"), r#"{"totals":[]}"#).expect("written");
        let first = results_page(dir.path(), "");
        std::fs::remove_file(dir.path().join("powercuts.json")).expect("removed");
        let file = dir.path().join("vm.json");
        std::fs::remove_file(&file).expect("removed");
        assert_eq!(results_page(dir.path(), &first), first);
        std::fs::write(&file, vm(7)).expect("written");
        let newer = results_page(dir.path(), &first);
        assert_eq!(newer, first.replace("| lost | 1 |", "| lost | 7 |"));
        std::fs::write(&file, "[]").expect("written");
        assert!(
            results_page(dir.path(), &first).contains("No result: `vm.json`"),
            "it is there, and is none"
        );
    }

    #[test]
    fn a_page_says_what_is_missing_and_what_is_there() {
        let dir = Scratch::new("missing");
        let cuts = r#"{"totals":[{"database":"sqlite","side":"seawall","rounds":210,"cuts":270,"sectors_lost":131492,
            "acknowledged":717402,"lost":0,"rounds_with_problems":0}]}"#;
        std::fs::write(dir.path().join("powercuts.json"), cuts).expect("written");
        let more = r#"{"totals":[{"database":"sqlite","side":"seawall","rounds":5,"cuts":5,"sectors_lost":1,
            "acknowledged":1,"lost":0,"rounds_with_problems":0},{"database":"redis","side":"seawall","rounds":7,"cuts":8,
            "sectors_lost":9,"acknowledged":10,"lost":0,"rounds_with_problems":0}]}"#;
        std::fs::write(dir.path().join("powercuts-more.json"), more).expect("written");
        let mount = cuts.replace("\"rounds\"", "\"front\":\"mount\",\"rounds\"");
        std::fs::write(dir.path().join("powercuts-mount.json"), mount).expect("written");
        let guest = cuts.replace("\"rounds\"", "\"front\":\"disk\",\"rounds\"");
        std::fs::write(dir.path().join("powercuts-guest.json"), guest).expect("written");
        let disk = cuts.replace("\"rounds\"", "\"medium\":\"disk\",\"rounds\"");
        std::fs::write(dir.path().join("powercuts-disk.json"), disk).expect("written");
        std::fs::write(dir.path().join("vm.json"), "[]").expect("written");
        let page = results_page(dir.path(), "");
        assert!(page.contains("| sqlite | seawall | 215 | 275 | 131,493 | 717,403 | 0 | 0 |"), "{page}");
        assert!(page.contains("| sqlite | seawall on the mount | 210 | 270 |"), "{page}");
        assert!(page.contains("| sqlite | seawall in a guest | 210 | 270 |"), "{page}");
        assert!(page.contains("| sqlite | seawall, log on the disk | 210 | 270 |"), "{page}");
        assert!(page.contains("| redis | seawall | 7 | 8 | 9 | 10 | 0 | 0 |"), "{page}");
        assert!(
            page.contains("No result: `vm.json`") && page.contains("No result: `campaign.json`"),
            "{page}"
        );
    }
}
