//! A unit's command that this program does not take fails where nobody looks: at a boot, or behind the `-` of an ExecStartPost=.

use std::fs;

use clap::Parser;

use super::choice::{Cached, Near};
use super::drop_in::tests::example;
use super::*;
use crate::Cli;

/// Checks every command of a unit that calls this program.
fn assert_is_taken(unit: &str) {
    let commands: Vec<&str> = unit
        .lines()
        .filter(|line| line.starts_with("Exec"))
        .filter_map(|line| line.split_once('=').map(|(_, command)| command.trim_start_matches(['-', '+'])))
        .filter(|command| !command.is_empty())
        .collect();
    assert!(!commands.is_empty(), "no command in\n{unit}");
    for command in commands {
        let words = command.split_whitespace();
        if let Err(e) = Cli::try_parse_from(words) {
            panic!("{command}\n{e}");
        }
    }
}

#[test]
fn what_attach_writes_is_taken() {
    let mut attached = example();
    assert_is_taken(&attached.render());
    let near = Near { time: "1s".into(), file: "/etc/x/y.conf".into(), user: Some("postgres".into()) };
    assert_is_taken(&near::unit(&attached, &near, "postgres"));
    attached.near = Some(near);
    assert_is_taken(&attached.render());
    attached.follower = Some("postgres".into());
    assert_is_taken(&follow::render(&attached).expect("a follower"));
    attached.cache = Some(Cached {
        size: 1 << 30,
        block_bytes: 4096,
        path: "/mnt/pmem/redis.pool.cache".into(),
        max: Some(1 << 41),
        write_budget: Some(1 << 40),
    });
    assert_is_taken(&attached.daemon_drop_in().1);
}

#[test]
fn what_the_package_installs_is_taken() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    let units = fs::read_dir(units).expect("the package's units").map(|entry| entry.expect("a unit").path());
    let units: Vec<_> = units.filter(|path| path.extension().is_some_and(|it| it == "service")).collect();
    assert!(units.len() > 4, "{units:?}");
    for unit in units {
        let text = fs::read_to_string(&unit).expect("a unit");
        // What its own head gives as an example.
        let options = text.lines().find_map(|line| line.strip_prefix("#     OPTIONS=")).unwrap_or_default();
        assert_is_taken(&text.replace("$OPTIONS", options));
    }
}
