//! The database's sections: load profile, efficiency, events, statements.

use seawall_page::scale::{bytes, digits};
use seawall_page::{Section, Table};

use super::charts;
use super::words::{figure, mean, of_unit, percent};
use crate::period::{Event, Period, Statement};

/// How many rows the top events have; AWR's number.
const TOP: usize = 10;

/// Per second and per transaction.
pub fn load_profile(period: &Period) -> Section {
    let mut section = Section::new("Load Profile");
    let mut table = Table::new("", &["<", "Per second", "Per transaction"]);
    for row in &period.load {
        let per_transaction =
            period.transactions.filter(|n| *n > 0.0 && !row.name.starts_with("Transactions"));
        table.row([
            row.name.clone(),
            of_unit(period.per_second(row.total), &row.unit),
            per_transaction.map_or_else(String::new, |n| of_unit(row.total / n, &row.unit)),
        ]);
    }
    section.table(table);
    section
}

/// Ratios.
pub fn efficiency(period: &Period) -> Section {
    let mut section = Section::new("Instance Efficiency Percentages");
    let mut table = Table::new("", &["<", "%"]);
    period.efficiency.iter().for_each(|(name, value)| table.row([name.clone(), format!("{value:.2}")]));
    section.table(table);
    section
}

/// Where the clients' time went.
pub fn events(period: &Period) -> Section {
    let mut section = Section::new("Top Timed Foreground Events");
    if period.events.is_empty() {
        return section;
    }
    section.words(match period.samples {
        0 => "No activity was sampled, so only what the database times itself is known. `seawall snap --every 60s` \
              samples once a second."
            .to_owned(),
        n if period.db_time_is_sampled => format!(
            "Sessions seen in {n} samples of activity. DB time is made of them too, because the database \
             does not count it. ± is the sampling error (95 %); the database's own names stand in the last \
             column."
        ),
        n => format!(
            "Shares of {n} samples of activity, of the DB time that the database counted. ± is the sampling error \
             (95 %); the database's own names stand in the last column."
        ),
    });
    let mut table =
        Table::new("", &["<Event", "Time (s)", "% DB time", "±", "<Wait class", "<PostgreSQL's name"]);
    if period.target.product != "PostgreSQL" {
        table.head[5] = "<The database's name".into();
    }
    for event in period.events.iter().take(TOP) {
        table.row([
            event.name.clone(),
            digits(event.time_s),
            percent(period.share(event.time_s)),
            sampling_error(period, event).map_or_else(String::new, |e| format!("{e:.1}")),
            event.class.clone(),
            event.native.clone(),
        ]);
    }
    section.table(table).chart(charts::activity(period));
    section
}

/// Half the width of the 95 % interval of a sampled share (Agresti and Coull), in percent points. Sessions seen in
/// one sample are not independent: no more than the number of samples counts.
pub fn sampling_error(period: &Period, event: &Event) -> Option<f64> {
    let share = period.share(event.time_s)? / 100.0;
    let seen = (period.samples as f64).min(period.active_seen as f64);
    let sampled = event.source == "sampled" && seen > 0.0;
    let (n, p) = (seen + 4.0, (share * seen + 2.0) / (seen + 4.0));
    sampled.then(|| 196.0 * (p * (1.0 - p).max(0.0) / n).sqrt())
}

/// The server's own processes, and what the database timed.
pub fn background(period: &Period) -> Section {
    let mut section = Section::new("Background Events and Timed I/O");
    let mut table = Table::new("", &["<Event", "Waits", "Time (s)", "Mean", "<Source", "<Name there"]);
    for event in period.background.iter().take(2 * TOP) {
        table.row([
            event.name.clone(),
            figure(event.waits),
            digits(event.time_s),
            mean(event.time_s, event.waits),
            event.source.clone(),
            event.native.clone(),
        ]);
    }
    if !table.rows.is_empty() {
        section.words("Timed I/O happens inside the sessions' waits above as well: these rows do not add up with those.");
    }
    section.table(table);
    section
}

/// Statements by time.
pub fn statements(period: &Period) -> Section {
    let mut section = Section::new("SQL Ordered by Elapsed Time");
    let head =
        ["<Statement", "Time (s)", "% DB time", "Calls", "Mean", "Rows", "Blocks read", "WAL", "<<Text"];
    let mut table = Table::new("", &head);
    for statement in period.statements.iter().take(2 * TOP) {
        table.row(statement_row(period, statement));
    }
    section.table(table);
    section
}

fn statement_row(period: &Period, statement: &Statement) -> [String; 9] {
    let counter = |name: &str| statement.counters.get(name).copied();
    [
        statement.id.clone(),
        digits(statement.time_s),
        percent(period.share(statement.time_s)),
        figure(counter("calls")),
        mean(statement.time_s, counter("calls")),
        figure(counter("rows")),
        figure(counter("shared_blks_read")),
        counter("wal_bytes").map_or_else(|| "–".into(), bytes),
        statement.text.clone(),
    ]
}
