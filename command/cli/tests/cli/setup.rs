//! `seawall provision`, `layout` and `tier` as far as they change nothing: what they show, refuse, and end with.
//! `seawall-vmtest --below` tries in a virtual machine what they change.

use std::io::Read;
use std::process::{Command, Output, Stdio};

use crate::common::SEAWALL;

fn run(arguments: &[&str]) -> Output {
    Command::new(SEAWALL).args(arguments).stdin(Stdio::null()).output().expect("seawall runs")
}

fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].iter().map(|bytes| String::from_utf8_lossy(bytes)).collect()
}

#[test]
fn what_is_asked_for_wrongly_is_refused_and_says_what_to_do() {
    for (arguments, wanted) in [
        (&["provision", "sdq"][..], "is not region0"),
        (&["provision", "region99"], "there is no region99"),
        (&["provision", "/dev/null", "--pool"], "is a partition, or not a disk"),
        (&["provision", "undo", "nothing", "--yes"], "nothing called nothing was set up"),
        (&["provision", "region0", "--mount", "relative"], "begins with /"),
        (&["layout", "plan", "x", "/dev/null", "--mount", "/x"], "is not a whole disk"),
        (&["layout", "status", "nothing"], "nothing called nothing was set up"),
        (&["tier", "where", "/nowhere"], "/nowhere"),
        (&["tier", "hot", "4194303"], "there is no process 4194303"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(wanted), "{arguments:?}: {}", said(&output));
    }
    for arguments in [&["layout"][..], &["provision", "--mount", "/x"], &["tier", "run"]] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn what_there_is_is_listed_and_nothing_was_set_up() {
    for arguments in
        [&["provision", "list"][..], &["layout", "list"], &["layout", "status"], &["provision"], &["tier"]]
    {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        assert!(!output.stdout.is_empty(), "{arguments:?}");
    }
    let json = run(&["tier", "--json"]);
    let nodes: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert!(nodes["nodes"].is_array() && nodes["promotes"].is_boolean(), "{nodes}");
}

/// A program that has 64 MiB and goes on touching 8 of them.
#[test]
fn what_of_a_program_is_in_use_is_measured_from_outside() {
    let perl = "my $x = chr(1) x (64 << 20); $| = 1; print qq(ready\\n); \
                while (1) { for (my $i = 0; $i < (8 << 20); $i += 4096) { substr($x, $i, 1) = chr(2); } select(undef, undef, undef, 0.01); }";
    let mut child =
        Command::new("perl").args(["-e", perl]).stdout(Stdio::piped()).spawn().expect("perl runs");
    child.stdout.as_mut().expect("piped").read_exact(&mut [0; 6]).expect("it is ready");
    let output = run(&["tier", "hot", &child.id().to_string(), "--seconds", "2", "--json"]);
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(output.status.success(), "{}", said(&output));
    let hot: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = |value: &serde_json::Value| value.as_u64().expect("a number") >> 20;
    assert!(number(&hot["resident"]) >= 64, "{hot}");
    let window = &hot["windows"][1];
    assert!((8..40).contains(&number(&window["most"])), "{hot}");
    assert!(hot["sizes"][0]["fetched"].as_f64().expect("a number") < 8e6, "{hot}");
}
