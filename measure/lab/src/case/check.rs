//! What a parser cannot know: whether the values of a case make sense together.

use std::ops::Range;

use seawall_load::write::parse_bytes;
use toml::Spanned;

use super::wrong::{Checked, Wrong};
use super::{Case, Configuration, Devices, Front, Load, Measure, Medium, Product, Role, Slicing, Wal};

fn wrong(at: Range<usize>, what: String) -> Checked {
    Err(Wrong { at, what })
}

pub(super) fn check(case: &Case) -> Checked {
    name(&case.name)?;
    numbers(case)?;
    load(case)?;
    devices(case)?;
    slices(case)?;
    for (i, configuration) in case.configurations.iter().enumerate() {
        one(configuration)?;
        let twice = case.configurations[..i].iter().any(|c| c.get_ref().name == configuration.get_ref().name);
        if twice {
            let name = &configuration.get_ref().name;
            return wrong(configuration.span(), format!("name: there are two configurations {name:?}"));
        }
    }
    roles(case)?;
    source(case)
}

fn name(name: &Spanned<String>) -> Checked {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
        return wrong(
            name.span(),
            format!("name: {:?} may have only lower-case letters, digits and -", name.get_ref()),
        );
    }
    Ok(())
}

fn numbers(case: &Case) -> Checked {
    if !(1..=100).contains(case.rounds.get_ref()) {
        return wrong(
            case.rounds.span(),
            format!("rounds: {} is not from 1 to 100 (a result needs at least 3)", case.rounds.get_ref()),
        );
    }
    if !(1..=3600).contains(case.seconds.get_ref()) {
        return wrong(
            case.seconds.span(),
            format!("seconds: {} is not from 1 to 3600", case.seconds.get_ref()),
        );
    }
    if let Some(memory) = &case.memory
        && !parse_bytes(memory.get_ref()).is_ok_and(|bytes| bytes >= 32 << 20)
    {
        let what = format!("memory: {:?} must be a number and K, M or G, and at least 32M", memory.get_ref());
        return wrong(memory.span(), what);
    }
    if let Some(flush) = case.flush_ms.as_ref().filter(|ms| !(0..=1000).contains(ms.get_ref())) {
        return wrong(flush.span(), format!("flush_ms: {} is not from 0 to 1000", flush.get_ref()));
    }
    let told = case.configurations.iter().find(|c| c.get_ref().keep || c.get_ref().prewarm);
    if let Some(told) = told.filter(|c| case.memory.is_none() || c.get_ref().cache.is_none()) {
        let what = "keep and prewarm need a `cache`, and a case with `memory`: only there does the daemon start before the database";
        return wrong(told.span(), what.into());
    }
    if case.measures.get_ref().is_empty() {
        let all = Measure::ALL.map(|m| format!("`{}`", m.key())).join(", ");
        return wrong(case.measures.span(), format!("measures: name at least one of {all}"));
    }
    Ok(())
}

fn devices(case: &Case) -> Checked {
    match &case.devices {
        Some(Devices { writes_per_second: rate }) if !(50..=1_000_000).contains(rate.get_ref()) => {
            wrong(rate.span(), format!("writes_per_second: {} is not from 50 to 1000000", rate.get_ref()))
        }
        _ => Ok(()),
    }
}

fn slices(case: &Case) -> Checked {
    let Some(Slicing { seconds, below_percent }) = &case.slices else { return Ok(()) };
    if !(0.5..=60.0).contains(seconds.get_ref()) || !(0.01..=50.0).contains(below_percent) {
        return wrong(
            seconds.span(),
            "[slices]: seconds must be from 0.5 to 60, and below_percent from 0.01 to 50".into(),
        );
    }
    let captured = case.configurations.first().is_some_and(|c| c.get_ref().captured_every.is_some());
    let fits = matches!(case.load(), Load::Pgbench(_)) && case.crash.is_none() && case.controls.is_empty();
    if !(fits && captured && case.configurations.len() == 1) {
        let what = "[slices] needs [pgbench], one configuration with captured_every, and neither [crash] nor controls: \
                    the control is among the slices";
        return wrong(seconds.span(), what.into());
    }
    Ok(())
}

fn load(case: &Case) -> Checked {
    let (first, second) = (case.loads().next(), case.loads().nth(1));
    let Some(load) = first else {
        return wrong(0..0, format!("the case has no load: add one table of {}", Load::TABLES));
    };
    if second.is_some() {
        return wrong(0..0, format!("a case has only one load: keep one table of {}", Load::TABLES));
    }
    if case.crash.is_some() && !matches!(load, Load::Pgbench(_) | Load::Sysbench(_) | Load::Slob(_)) {
        return wrong(
            0..0,
            "[crash] is timed by pgbench, SLOB or sysbench: use a table [pgbench], [slob] or [sysbench] as the load".into(),
        );
    }
    let recovery = case.configurations.iter().find(|c| c.get_ref().recovery.is_some());
    if let Some(recovery) = recovery.filter(|c| c.get_ref().front != Front::Preload) {
        return wrong(
            recovery.span(),
            "recovery: this is an option of `seawall run`, so it needs front = \"preload\"".into(),
        );
    }
    if case.crash.is_some() && matches!(load, Load::Pgbench(p) if !p.test.updates()) {
        return wrong(0..0, "[crash]: select-only leaves nothing to recover".into());
    }
    on_product(case, load.product())?;
    load.check()
}

/// What not every database can have.
fn on_product(case: &Case, product: Product) -> Checked {
    let apart = case.configurations.iter().find(|c| c.get_ref().wal != Wal::WithData);
    if let Some(apart) = apart.filter(|_| product != Product::Postgres) {
        let what =
            format!("wal: the place of the log can be chosen for PostgreSQL, not for {}", product.name());
        return wrong(apart.span(), what);
    }
    let standby = case.configurations.iter().find(|c| c.get_ref().standby);
    if let Some(standby) =
        standby.filter(|c| product != Product::Postgres || c.get_ref().front != Front::None)
    {
        return wrong(standby.span(), "standby: only PostgreSQL without Seawall can have one".into());
    }
    let preload = case.configurations.iter().find(|c| c.get_ref().front == Front::Preload);
    if let Some(preload) = preload.filter(|_| product == Product::Etcd) {
        let what = "front: etcd makes its system calls itself, so a preload does not see them: use front = \"mount\"";
        return wrong(preload.span(), what.into());
    }
    Ok(())
}

fn one(configuration: &Spanned<Configuration>) -> Checked {
    let at = configuration.span();
    let c = configuration.get_ref();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if c.name.is_empty() || !c.name.chars().all(plain) {
        return wrong(at, format!("name: {:?} may have only lower-case letters, digits and -", c.name));
    }
    if (c.front == Front::None) != c.medium.is_none() {
        let what = "a front (`preload`, `mount`) needs a medium (`emulated`, `file`, `dax`, `block`, `replicated`), and a medium needs a front";
        return wrong(at, format!("configuration {:?}: {what}", c.name));
    }
    for (key, size) in [("pool", &c.pool), ("cache", &c.cache)] {
        if let Some(size) = size
            && parse_bytes(size).is_err()
        {
            let what = format!(
                "{key}: {size:?} of {:?} is not a size: write a number and K, M or G, for example 256M",
                c.name
            );
            return wrong(at, what);
        }
    }
    if (c.medium == Some(Medium::Replicated)) != c.keepers.is_some()
        || c.keepers.is_some_and(|n| !(1..=8).contains(&n))
    {
        let what = "medium = \"replicated\" needs keepers, from 1 to 8, and keepers need that medium";
        return wrong(at, format!("configuration {:?}: {what}", c.name));
    }
    if c.eatmydata && c.front != Front::None {
        return wrong(at, format!("configuration {:?}: eatmydata cannot be used with Seawall", c.name));
    }
    if c.delay_us.is_some() && c.keepers.is_none() && !c.standby {
        return wrong(at, format!("configuration {:?}: delay_us needs keepers or a standby", c.name));
    }
    if c.cache.is_some()
        && (c.front != Front::Preload || !matches!(c.medium, Some(Medium::Emulated | Medium::Dax)))
    {
        let what = "a cache needs front = \"preload\" and a pool in mapped memory (`emulated`, `dax`)";
        return wrong(at, format!("configuration {:?}: {what}", c.name));
    }
    if c.cpus == Some(0) || c.cpu_max.is_some_and(|max| !(0.05..=1024.0).contains(&max)) {
        return wrong(
            at,
            format!("configuration {:?}: cpus must be at least 1, and cpu_max from 0.05 to 1024", c.name),
        );
    }
    Ok(())
}

fn roles(case: &Case) -> Checked {
    let baselines: Vec<_> =
        case.configurations.iter().filter(|c| c.get_ref().role == Role::Baseline).collect();
    let baseline = match baselines[..] {
        [one] => one.get_ref(),
        [] => {
            return wrong(
                0..0,
                "no configuration has role = \"baseline\": all others are compared with that one".into(),
            );
        }
        [_, second, ..] => {
            return wrong(
                second.span(),
                format!("role: {:?} is a second baseline: a case has only one", second.get_ref().name),
            );
        }
    };
    for control in &case.controls {
        if !case.configurations.iter().any(|c| c.get_ref().name == *control.get_ref()) {
            let names: Vec<_> =
                case.configurations.iter().map(|c| format!("`{}`", c.get_ref().name)).collect();
            let (control, names) = (control.get_ref(), names.join(", "));
            return wrong(
                case.controls[0].span(),
                format!("controls: {control:?} is not a configuration: choose from {names}"),
            );
        }
    }
    if case.slices.is_none() && !case.controls.iter().any(|c| *c.get_ref() == baseline.name) {
        let name = &baseline.name;
        return wrong(
            case.controls.first().map_or(0..0, Spanned::span),
            format!("controls: the baseline {name:?} must be among them: measured twice, it shows the noise"),
        );
    }
    Ok(())
}

fn source(case: &Case) -> Checked {
    let Some(source) = &case.source else { return Ok(()) };
    match source.rows.iter().find(|row| row.len() != source.columns.len()) {
        Some(row) => wrong(
            0..0,
            format!(
                "[source]: a row has {} cells, but there are {} columns: {row:?}",
                row.len(),
                source.columns.len()
            ),
        ),
        None => Ok(()),
    }
}
