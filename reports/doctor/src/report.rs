//! The report on a machine: the findings, what could not be seen, and the verdict that scripts get.

use seawall_page::{Block, Document, Note, Section, Weight};
use serde::Serialize;

use crate::checks;
use crate::finding::{Finding, Kind, Unseen};
use crate::machine::{Disk, Link};
use crate::place::{Place, Role};
use crate::view::View;

/// Of the JSON output. A field may be added; none changes its meaning without another number.
const VERSION: u32 = 1;

/// The verdict. Its numbers are the exit codes, which are those of monitoring plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing was found.
    Clean = 0,
    /// Something costs speed.
    Speed = 1,
    /// Something undoes durability.
    Durability = 2,
    /// What was asked for could not be looked at.
    CouldNotLook = 3,
}

/// A report. Its fields are those of the JSON output.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Of this format.
    pub version: u32,
    /// The worst that was found.
    pub verdict: Verdict,
    /// The kernel's release.
    pub kernel: String,
    /// A hypervisor runs the machine.
    pub virtual_machine: bool,
    /// What runs the container we are in, as far as files tell.
    pub container: Option<&'static str>,
    /// The database that was found at the path.
    pub database: Option<&'static str>,
    /// What was asked about; empty if it is the whole machine.
    pub places: Vec<PlaceShown>,
    /// The devices that were looked at.
    pub devices: Vec<DeviceShown>,
    /// The findings: durability, speed, information.
    pub findings: Vec<Finding>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

/// A place, as it is shown.
#[derive(Debug, Serialize)]
pub struct PlaceShown {
    role: Role,
    path: String,
    file_system: Option<String>,
    source: Option<String>,
    mounted_at: Option<String>,
    devices: Vec<String>,
    dax: Option<bool>,
    map_sync: Option<bool>,
}

/// A device, as it is shown.
#[derive(Debug, Serialize)]
pub struct DeviceShown {
    name: String,
    model: String,
    link: Link,
    bytes: u64,
    /// The kernel sends it flushes.
    flushed: Option<bool>,
    fua: Option<bool>,
    scheduler: Option<String>,
    atomic_write_bytes: Option<u64>,
    node: Option<u32>,
    made_of: Vec<String>,
    /// LVM, dm-crypt …, if device mapper made it.
    mapped_by: Option<&'static str>,
}

impl Report {
    /// Looks, and says what is.
    pub fn of(view: &View<'_>) -> Self {
        let findings = checks::findings(view);
        let mut unseen = checks::unseen(view);
        if view.machine.mounts.is_empty() {
            unseen.push(Unseen::asked("this machine", "neither /proc nor /sys can be read"));
        }
        Self {
            version: VERSION,
            verdict: verdict(&findings, &unseen),
            kernel: view.machine.kernel.clone(),
            virtual_machine: view.machine.cpu.hypervisor,
            container: view.machine.cpu.container,
            database: view.database.as_ref().map(|found| found.engine.name()),
            places: view.places.iter().map(place).collect(),
            devices: view.disks().into_iter().map(device).collect(),
            findings,
            unseen,
        }
    }

    /// The report as a document, for text and HTML.
    pub fn document(&self) -> Document {
        let title = match self.places.first() {
            Some(place) => format!("What is below {}", place.path),
            None => "What is below the databases of this machine".to_owned(),
        };
        let sections =
            [("Durability", Kind::Durability), ("Speed", Kind::Speed), ("Good to know", Kind::Information)];
        let mut shown: Vec<Section> =
            sections.iter().map(|(title, kind)| self.section(title, *kind)).collect();
        shown.push(self.not_seen());
        Document { brand: "Seawall doctor".into(), title, medium: None, facts: self.facts(), sections: shown }
    }

    fn facts(&self) -> Vec<(String, String)> {
        let pair = |name: &str, value: String| (name.to_owned(), value);
        let place = if self.virtual_machine { "in a virtual machine" } else { "on the hardware" };
        let container = self.container.map_or(String::new(), |name| format!(", in a container ({name})"));
        let mut facts = vec![pair("kernel", format!("{}, {place}{container}", self.kernel))];
        facts.extend(self.database.map(|name| pair("database", name.to_owned())));
        for place in &self.places {
            let role = match place.role {
                Role::Path => "path",
                Role::Data => "data",
                Role::Log => "log",
            };
            facts.push(pair(role, place.in_words()));
        }
        facts.extend(self.devices.iter().map(|device| pair("device", device.in_words())));
        facts.push(pair("verdict", self.in_words()));
        facts
    }

    fn in_words(&self) -> String {
        let count = |kind| self.findings.iter().filter(|finding| finding.kind == kind).count();
        let many =
            |count: usize| if count == 1 { "1 finding".to_owned() } else { format!("{count} findings") };
        let (durability, speed) = (count(Kind::Durability), count(Kind::Speed));
        match self.verdict {
            Verdict::Clean => "nothing was found that undoes durability or costs speed".to_owned(),
            Verdict::Speed => format!("{} on speed", many(speed)),
            Verdict::Durability => format!("{} on durability, {speed} on speed", many(durability)),
            Verdict::CouldNotLook => "the place or machine that you named could not be examined".to_owned(),
        }
    }

    fn section(&self, title: &str, kind: Kind) -> Section {
        let mut section = Section::new(title);
        let of_kind = self.findings.iter().filter(|finding| finding.kind == kind);
        for finding in of_kind {
            section.blocks.push(Block::Note(note(finding)));
            section.blocks.push(Block::Commands(finding.commands.clone()));
        }
        section
    }

    fn not_seen(&self) -> Section {
        let mut section = Section::new("Not seen from here");
        for unseen in &self.unseen {
            section.words(format!("{} – {}.", unseen.what, unseen.why));
        }
        section.words("Nothing was changed, and no command was run.");
        section
    }
}

fn verdict(findings: &[Finding], unseen: &[Unseen]) -> Verdict {
    let found = |kind| findings.iter().any(|finding| finding.kind == kind);
    match () {
        () if found(Kind::Durability) => Verdict::Durability,
        () if unseen.iter().any(|unseen| unseen.asked) => Verdict::CouldNotLook,
        () if found(Kind::Speed) => Verdict::Speed,
        () => Verdict::Clean,
    }
}

fn note(finding: &Finding) -> Note {
    let weight = match finding.kind {
        Kind::Durability => Weight::Bad,
        Kind::Speed => Weight::Warn,
        Kind::Information => Weight::Info,
    };
    let lines = vec![format!("{}.", finding.why), finding.sure.line(&finding.sure_because)];
    Note { weight, title: format!("{}  [{}]", finding.what, finding.id), lines }
}

fn place(place: &Place<'_>) -> PlaceShown {
    PlaceShown {
        role: place.role,
        path: place.path.display().to_string(),
        file_system: place.mount.map(|mount| mount.kind.clone()),
        source: place.mount.map(|mount| mount.source.clone()),
        mounted_at: place.mount.map(|mount| mount.point.display().to_string()),
        devices: place.stack.iter().map(|disk| disk.name.clone()).collect(),
        dax: place.dax,
        map_sync: place.map_sync,
    }
}

fn device(disk: &Disk) -> DeviceShown {
    DeviceShown {
        name: disk.name.clone(),
        model: disk.model.clone(),
        link: disk.link,
        bytes: disk.bytes,
        flushed: disk.flushed,
        fua: disk.fua,
        scheduler: disk.scheduler.clone(),
        atomic_write_bytes: disk.atomic,
        node: disk.node,
        made_of: disk.slaves.clone(),
        mapped_by: disk.mapped_by(),
    }
}

impl PlaceShown {
    fn in_words(&self) -> String {
        let (Some(kind), Some(source), Some(at)) = (&self.file_system, &self.source, &self.mounted_at) else {
            return format!("{}: a device", self.path);
        };
        let devices = if self.devices.is_empty() { source.clone() } else { self.devices.join(" ← ") };
        let direct = match (self.dax, self.map_sync) {
            (_, Some(true)) => ", direct (MAP_SYNC)",
            (Some(true), _) => ", direct",
            _ => "",
        };
        format!("{}: {kind} on {devices}, mounted at {at}{direct}", self.path)
    }
}

impl DeviceShown {
    fn in_words(&self) -> String {
        let cache = match (self.flushed, self.fua) {
            (Some(true), Some(true)) => "flushed, FUA",
            (Some(true), _) => "flushed, no FUA",
            (Some(false), _) => "takes no flush",
            (None, _) => "flush unknown",
        };
        let model = if self.model.is_empty() { String::new() } else { format!(" {}", self.model) };
        let made_of =
            if self.made_of.is_empty() { String::new() } else { format!(", of {}", self.made_of.join(", ")) };
        let size = seawall_page::scale::bytes(self.bytes as f64);
        let by = self.mapped_by.map_or(String::new(), |by| format!(" ({by})"));
        format!("{}{model}{by}, {size}, {cache}{made_of}", self.name)
    }
}
