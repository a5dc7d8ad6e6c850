//! The page around the chart: what was found, what it means, how it was measured.

use std::fmt::Write;

use seawall_page::escape;

use super::chart;
use crate::demo::{BareStart, DemoReport, KillReport, Row};
use crate::spread::Spread;
use crate::table::{short, thousands};

/// The whole page.
pub fn page(report: &DemoReport) -> String {
    let mut body = header(report);
    body += &tiles(report);
    if !report.rows.is_empty() {
        body += &rates(report);
    }
    if !report.kills.is_empty() {
        body += &losses(report);
    }
    body += &method(report);
    seawall_page::shell("Seawall: the demo", "", &body)
}

fn header(report: &DemoReport) -> String {
    format!(
        "<header>\n<p class=\"brand\">Seawall · demo</p>\n\
         <h1>Unmodified databases, commits at memory speed</h1>\n\
         <p class=\"medium\"><span>Medium of the log</span> <strong>{}</strong></p>\n\
         <p class=\"about\">{}</p>\n</header>\n",
        escape(&report.medium),
        escape(&report.about())
    )
}

fn tiles(report: &DemoReport) -> String {
    let mut tiles = String::new();
    let mut tile = |value: &str, text: &str, class: &str| {
        let _ = writeln!(tiles, "<div class=\"tile {class}\"><b>{value}</b><span>{text}</span></div>");
    };
    for database in ["PostgreSQL", "SQLite"] {
        let gains: Vec<f64> = report
            .rows
            .iter()
            .filter(|r| r.group.starts_with(database) && r.tps.verdict(report.rounds).is_shown())
            .map(|r| r.tps.speedup.median)
            .collect();
        if let Some(gain) = Spread::of(&gains) {
            let text = format!("{database} against the bare file system, where a difference was shown");
            let (least, most) = (short(gain.min), short(gain.max));
            let value = if least == most { format!("{most}×") } else { format!("{least}–{most}×") };
            tile(&value, &text, "");
        }
    }
    let of_unsafe: Vec<f64> = report.rows.iter().map(|r| r.tps.of_unsafe.median).collect();
    if let Some(share) = Spread::of(&of_unsafe) {
        let text = "of the speed without any durability (median over all loads)";
        tile(&format!("{:.0} %", share.median * 100.0), text, "");
    }
    if !report.kills.is_empty() {
        let acknowledged: u64 = report.kills.iter().map(|k| k.verdict.acknowledged).sum();
        let missing: u64 = report.kills.iter().map(|k| k.verdict.missing).sum();
        let text =
            format!("of {} acknowledged commits missing after kill\u{a0}-9", thousands(acknowledged as f64));
        tile(&thousands(missing as f64), &text, if missing == 0 { "good" } else { "bad" });
    }
    format!("<section class=\"tiles\">\n{tiles}</section>\n")
}

fn rates(report: &DemoReport) -> String {
    format!(
        "<section>\n<h2>How fast</h2>\n<p>{}; the whiskers span the lowest and highest round. The figure over \
         Seawall\u{2019}s column is the gain over the bare file system: the median of ratios within a round, shown only \
         where it was larger in every round than what two equal sides differed by in any.</p>\n\
         <p class=\"legend\"><span><i class=\"fs\"></i>bare file system</span>\
         <span><i class=\"seawall\"></i>Seawall</span>\
         <span><i class=\"unsafe\"></i>unsafe bound: fsync=off, synchronous=OFF (loses commits at a power cut)\
         </span></p>\n{}<div class=\"scroll\">{}</div>\n</section>\n",
        report.rounds_in_words(),
        chart::figures(&report.rows, report.rounds),
        rates_table(&report.rows, report.rounds)
    )
}

fn rates_table(rows: &[Row], rounds: usize) -> String {
    let mut table = String::from(
        "<table><thead><tr><th>Transactions per second</th><th>Bare file system</th><th>Seawall</th><th>Unsafe bound</th>\
         <th>Gain</th><th>Of unsafe</th></tr></thead><tbody>\n",
    );
    let cell = |s: &Spread| {
        format!("{} <small>{}–{}</small>", thousands(s.median), thousands(s.min), thousands(s.max))
    };
    for row in rows {
        let t = &row.tps;
        let verdict = t.verdict(rounds);
        let gain = if verdict.is_shown() {
            format!("{}×", short(t.speedup.median))
        } else {
            format!("– <small>{}</small>", verdict.in_words())
        };
        let _ = writeln!(
            table,
            "<tr><th>{}, {}</th><td>{}</td><td>{}</td><td>{}</td><td>{gain}</td><td>{}</td></tr>",
            escape(&row.group),
            escape(&row.label),
            cell(&t.fs),
            cell(&t.seawall),
            cell(&t.unsafe_bound),
            short(t.of_unsafe.median)
        );
    }
    table + "</tbody></table>"
}

fn losses(report: &DemoReport) -> String {
    let mut rows = String::new();
    for kill in &report.kills {
        let v = &kill.verdict;
        let ready = kill.restart_seconds.map_or("–".to_owned(), |s| format!("{s:.1} s"));
        let (checks, class) = match v.integrity_errors.len() {
            0 => ("sound".to_owned(), "good"),
            n => (format!("{n} errors"), "bad"),
        };
        let missing = if v.missing == 0 { "good" } else { "bad" };
        let _ = writeln!(
            rows,
            "<tr><th>{}</th><td>{}</td><td class=\"{missing}\">{}</td><td class=\"{class}\">{checks}</td><td>{}</td>\
             <td>{}</td><td>{ready}</td></tr>",
            escape(&kill.what),
            thousands(v.acknowledged as f64),
            thousands(v.missing as f64),
            v.unacknowledged,
            kill.processes,
        );
    }
    let guards: String = report.kills.iter().filter_map(guard).collect();
    let heading = if report.faults().is_empty() { "Nothing lost" } else { "Faults found" };
    format!(
        "<section>\n<h2>{heading}</h2>\n<p>Every process got SIGKILL at full load. Each commit had been noted in \
         a ledger outside the database as soon as it was acknowledged; after a restart under Seawall the two were \
         compared, and the databases\u{2019} own checkers were run (amcheck on every table and index, \
         integrity_check). This is not a power cut: the medium above says what the log survives.</p>\n\
         <div class=\"scroll\"><table><thead><tr><th>Killed</th><th>Acknowledged</th><th>Missing</th>\
         <th>Checkers</th><th>In flight, kept</th><th>Processes</th><th>Ready again</th></tr></thead><tbody>\n\
         {rows}</tbody></table></div>\n{guards}</section>\n"
    )
}

fn guard(kill: &KillReport) -> Option<String> {
    Some(match kill.bare_start.as_ref()? {
        BareStart::Refused(words) => format!(
            "<p>Before recovery, a start <em>without</em> Seawall was refused, so that nobody reads stale files by \
             mistake:</p>\n<pre>{}</pre>\n",
            escape(words)
        ),
        BareStart::Started => {
            "<p class=\"bad\">Before recovery, a start without Seawall was <strong>not</strong> refused.</p>\n".to_owned()
        }
    })
}

fn method(report: &DemoReport) -> String {
    let machine = &report.machine;
    let settings: Vec<String> =
        report.settings.iter().filter(|(_, v)| !v.is_empty()).map(|(n, v)| format!("{n}={v}")).collect();
    let versions: Vec<String> = report.versions.iter().map(|(n, v)| format!("{n} {v}")).collect();
    let rows = [
        (
            "Machine",
            format!(
                "{} CPUs ({}), {} MB of memory, {}, Linux {}",
                machine.cpus,
                escape(&machine.cpu),
                thousands(machine.memory_mb as f64),
                escape(&machine.system),
                escape(&machine.kernel)
            ),
        ),
        ("Versions", escape(&versions.join(" \u{b7} "))),
        ("Idle processors", escape(&machine.idle)),
        ("Data", escape(&machine.filesystem)),
        ("Log", format!("{} MB, {}", report.pool_bytes >> 20, escape(&report.medium))),
        (
            "Order",
            "the sides take turns, and each round begins with another one; all start from a copy of the same \
             cluster; before each run an explicit CHECKPOINT, then everything is drained and synced to disk, on \
             all sides alike; the unsafe bound runs twice in each round, on two equal copies, and what the two differ by \
             is noise"
                .to_owned(),
        ),
        (
            "PostgreSQL",
            format!(
                "pgbench scale {}, data checksums; <code>{}</code>; the unsafe side adds <code>fsync=off</code>",
                report.scale,
                escape(&settings.join(" "))
            ),
        ),
        (
            "SQLite",
            "the distribution\u{2019}s library, one writer, one update and one insert a commit, \
             <code>synchronous=FULL</code>; the unsafe side <code>OFF</code>; in DELETE mode every commit creates and \
             removes a rollback journal, whose syncs stay the kernel\u{2019}s"
                .to_owned(),
        ),
    ];
    let rows: String = rows.iter().map(|(name, text)| format!("<dt>{name}</dt><dd>{text}</dd>\n")).collect();
    format!("<section class=\"method\">\n<h2>How it was measured</h2>\n<dl>\n{rows}</dl>\n</section>\n")
}
