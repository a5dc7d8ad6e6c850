//! Seawall's sections: its waits, its log, its files.

use seawall_page::scale::{bytes, digits, time};
use seawall_page::{Block, Note, Section, Table, Weight};

use super::charts;
use super::words::{figure, of_unit};
use crate::period::{File, Period, Seawall, Wait};

const FILES: usize = 20;

/// Its waits, every one of them timed.
pub fn part(period: &Period) -> Section {
    let mut section = Section::new("Seawall: Wait Event Histograms");
    let Some(part) = &period.seawall else { return section };
    if part.medium_name == "emulated" {
        section.blocks.push(Block::Note(Note {
            weight: Weight::Warn,
            title: "The log's medium is emulated".into(),
            lines: vec![format!(
                "{} These times are those of RAM. They say nothing about persistent memory, and nothing here \
                 survives a power cut.",
                part.medium
            )],
        }));
    }
    section.words("Every wait is timed, from below a microsecond up; nothing here is sampled.");
    section.blocks.push(Block::Facts(log(part)));
    let head = [
        "<Event",
        "<Stage",
        "Waits",
        "Per second",
        "Time (s)",
        "Mean",
        "p50",
        "p99",
        "p99.9",
        "Longest bucket",
    ];
    let mut table = Table::new("", &head);
    part.waits.iter().for_each(|wait| table.row(wait_row(period, wait)));
    section.table(table).chart(charts::latency(period));
    section
}

fn wait_row(period: &Period, wait: &Wait) -> [String; 10] {
    let quantile = |q: f64| wait.quantile_ns(q).map_or_else(|| "–".into(), |ns| time(ns as f64));
    let timed = !wait.buckets.is_empty();
    [
        wait.name.clone(),
        wait.stage.clone(),
        digits(wait.count),
        digits(period.per_second(wait.count)),
        if timed { digits(wait.time_s) } else { "–".into() },
        if timed { time(wait.mean_ns()) } else { "–".into() },
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        wait.buckets.last().map_or_else(|| "–".into(), |(floor, _)| time(*floor as f64)),
    ]
}

fn log(part: &Seawall) -> Vec<(String, String)> {
    let gauge = |name: &str| part.log.get(name).copied().unwrap_or(0.0);
    let used = gauge("segments") - gauge("segments_free");
    vec![
        ("Medium".into(), format!("{} ({})", part.medium, part.because)),
        ("Pool".into(), format!("{}, {}", part.pool, bytes(gauge("size")))),
        (
            "Log at the end".into(),
            format!(
                "{used} of {} segments in use, {} to destage",
                gauge("segments"),
                bytes(gauge("backlog_bytes"))
            ),
        ),
        ("Processes at the end".into(), digits(gauge("clients"))),
    ]
}

/// By class of file, and by file.
pub fn files(period: &Period) -> Section {
    let mut section = Section::new("Seawall: I/O by File Class and File");
    let Some(part) = &period.seawall else { return section };
    if !part.files.is_empty() {
        section.words(
            "A file that is removed takes its counts along, so files and their sums may say less than the waits by class, \
             which count everything.",
        );
    }
    let what =
        ["Writes logged", "Bytes", "Per second", "Syncs absorbed", "Real syncs", "Around the log", "Left it"];
    let head = |first: &'static str| [&[first], what.as_slice()].concat();
    let mut classes = Table::new("By class", &head("<Class"));
    part.classes.iter().for_each(|class| classes.row(file_row(period, class)));
    let mut files = Table::new("By file", &head("<File"));
    part.files.iter().take(FILES).for_each(|file| files.row(file_row(period, file)));
    let head = ["<Class", "<Event", "Waits", "Per second", "Mean", "p50", "p99", "p99.9", "Longest bucket"];
    let mut waits = Table::new("How long it took, by class", &head);
    part.class_waits.iter().for_each(|wait| waits.row(class_row(period, wait)));
    section.table(classes).table(waits).chart(charts::latency_by_class(period)).table(files);
    section
}

fn class_row(period: &Period, wait: &Wait) -> [String; 9] {
    let [event, _, waits, rate, _, mean, p50, p99, p999, longest] = wait_row(period, wait);
    [wait.class.clone(), event, waits, rate, mean, p50, p99, p999, longest]
}

fn file_row(period: &Period, file: &File) -> [String; 8] {
    let counter = |name: &str| file.counters.get(name).copied();
    let logged = counter("bytes").unwrap_or(0.0);
    let files = counter("files").map_or_else(String::new, |n| format!(" ({n} files)"));
    [
        format!("{}{files}", file.name),
        figure(counter("writes")),
        bytes(logged),
        of_unit(period.per_second(logged), "bytes"),
        figure(counter("absorbed")),
        figure(counter("real_syncs")),
        figure(counter("untracked_writes")),
        figure(counter("left")),
    ]
}
