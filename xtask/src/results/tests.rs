use super::*;

#[test]
fn the_newest_of_several_results_says_when_they_were_written() {
    let dir = tempfile::tempdir().expect("a directory");
    // No `powercuts.json`: all of them were carried out apart.
    for (name, seconds) in [("a", 1_000_000_000), ("b", 1_600_000_000), ("c", 1_300_000_000)] {
        let file = std::fs::File::create(dir.path().join(format!("powercuts-{name}.json"))).expect("made");
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
    let dir = tempfile::tempdir().expect("a directory");
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
    assert!(results_page(dir.path(), &first).contains("No result: `vm.json`"), "it is there, and is none");
}

#[test]
fn a_page_says_what_is_missing_and_what_is_there() {
    let dir = tempfile::tempdir().expect("a directory");
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
    assert!(page.contains("No result: `vm.json`") && page.contains("No result: `campaign.json`"), "{page}");
}
