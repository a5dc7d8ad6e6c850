//! Machines we do not have: what is found on each of them is exactly what is written down, and a fault that is planted is named.

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::{Look, Recorded};
use seawall_doctor::{Kind, Report, Verdict};

/// Findings as they are written down.
fn lines(report: &Report) -> Vec<String> {
    let kind = |kind| match kind {
        Kind::Durability => "durability",
        Kind::Speed => "speed",
        Kind::Information => "information",
    };
    report
        .findings
        .iter()
        .map(|found| format!("{} {} {}", kind(found.kind), found.id, found.subject))
        .collect()
}

#[test]
fn every_machine_has_its_findings_and_no_others() {
    let machines = Recorded::all();
    assert!(machines.len() >= 20, "{}", machines.len());
    let mut wrong = String::new();
    for machine in &machines {
        assert!(!machine.looks.is_empty(), "{} is not looked at", machine.name);
        for Look { path, findings } in &machine.looks {
            let found = lines(&machine.examine(&[], path.as_deref()));
            if found != *findings {
                wrong +=
                    &format!("\n{} ({}), {path:?}:\n{}\n", machine.name, machine.title, found.join("\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "found instead of what is written down:{wrong}");
}

#[test]
fn a_planted_fault_is_named() {
    for machine in Recorded::all() {
        assert!(!machine.plants.is_empty(), "nothing is planted in {}", machine.name);
        for (spoiled, Look { path, findings }) in &machine.plants {
            assert!(!findings.is_empty(), "{}: nothing is to be named", machine.name);
            let before = lines(&machine.examine(&[], path.as_deref()));
            let found = lines(&machine.examine(spoiled, path.as_deref()));
            for wanted in findings {
                assert!(!before.contains(wanted), "{}: {wanted} is there before it is planted", machine.name);
                assert!(found.contains(wanted), "{}: {wanted} is not among {found:#?}", machine.name);
            }
        }
    }
}

#[test]
fn every_finding_says_what_why_how_sure_and_what_to_type() {
    for machine in Recorded::all() {
        let plants = machine.plants.iter().map(|(spoiled, look)| (spoiled.as_slice(), look));
        for (spoiled, look) in machine.looks.iter().map(|look| (&[][..], look)).chain(plants) {
            let report = machine.examine(spoiled, look.path.as_deref());
            for found in &report.findings {
                let said = [&found.what, &found.why, &found.sure_because, &found.subject];
                assert!(said.iter().all(|text| !text.is_empty() && !text.ends_with('.')), "{found:?}");
                assert!(found.kind == Kind::Information || !found.commands.is_empty(), "{found:?}");
                assert!(found.commands.iter().all(|line| !line.contains('\n')), "{found:?}");
            }
            let text = seawall_page::text(&report.document());
            assert!(text.contains("verdict") && text.contains("Nothing was changed"), "{text}");
        }
    }
}

/// The page lists the findings, and each of them is met: a row without a machine is a check that nobody has seen at work.
#[test]
fn the_page_lists_every_finding_and_every_finding_is_met() {
    let mut met: BTreeSet<String> = BTreeSet::new();
    for machine in Recorded::all() {
        let plants = machine.plants.iter().map(|(spoiled, look)| (spoiled.as_slice(), look));
        for (spoiled, look) in machine.looks.iter().map(|look| (&[][..], look)).chain(plants) {
            let report = machine.examine(spoiled, look.path.as_deref());
            met.extend(report.findings.iter().map(|found| found.id.to_owned()));
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/admin/DOCTOR.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, tables) = page.split_once("## What it finds").expect("its tables");
    let rows = tables.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let listed: BTreeSet<String> = rows.map(str::to_owned).collect();
    assert_eq!(met, listed, "met, and listed on the page");
}

/// An id in the sources that no machine meets would be missing in both.
#[test]
fn every_id_in_the_sources_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/admin/DOCTOR.md")).expect("the page");
    for entry in std::fs::read_dir(root.join("src/checks")).expect("checks") {
        let text = std::fs::read_to_string(entry.expect("one").path()).expect("a source");
        for kind in ["durability(", "speed(", "information("] {
            let given = text
                .split(kind)
                .skip(1)
                .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
            given.for_each(|id| assert!(page.contains(&format!("| `{id}` |")), "{id}"));
        }
    }
}

#[test]
fn a_verdict_is_the_worst_of_what_was_found() {
    let machines = Recorded::all();
    let of = |name: &str| machines.iter().find(|machine| machine.name == name).expect("a machine");
    let verdict = |name: &str, path: &str| of(name).examine(&[], Some(path.as_ref())).verdict;
    assert_eq!(verdict("aws-m6i-ebs", "/var/lib/postgresql/15/main"), Verdict::Clean);
    assert_eq!(verdict("desktop-old-disk", "/home"), Verdict::Speed);
    assert_eq!(verdict("aws-i3en-instance-store", "/data/pg"), Verdict::Durability);
    assert_eq!(verdict("laptop-sata-ssd", "/srv/redis"), Verdict::CouldNotLook);
}

/// A file in an image says that it is a container's; a machine that boots the image is none.
#[test]
fn a_container_is_one_on_an_overlay() {
    let machines = Recorded::all();
    let of = |name: &str| machines.iter().find(|machine| machine.name == name).expect("a machine");
    assert_eq!(of("docker-overlay").examine(&[], None).container, Some("Docker"));
    assert_eq!(of("firecracker-guest").examine(&[], None).container, None);
}

#[test]
fn the_json_output_keeps_its_fields() {
    let machine =
        Recorded::all().into_iter().find(|machine| machine.name == "laptop-sata-ssd").expect("a machine");
    let report = machine.examine(&[], None);
    let json = serde_json::to_value(&report).expect("JSON");
    for field in [
        "version",
        "verdict",
        "kernel",
        "virtual_machine",
        "database",
        "places",
        "devices",
        "findings",
        "unseen",
    ] {
        assert!(json.get(field).is_some(), "{field}");
    }
    let finding = &json["findings"][0];
    for field in ["id", "kind", "subject", "what", "why", "sure", "sure_because", "commands"] {
        assert!(finding.get(field).is_some(), "{field}");
    }
    assert_eq!((json["version"].as_u64(), json["verdict"].as_str()), (Some(1), Some("clean")));
}
