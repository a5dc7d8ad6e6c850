//! What the regions of `docs/internals/FORMAT.md` hold: zones, and one drawing and one table for each struct.

use seawall_core::format::{
    AreaHeader, Descriptor, Layout, NameHead, ROOTS, RecordHeader, RootDescriptor, SegmentHeader,
    SpillDescriptor, Superblock,
};

use crate::fields::Struct;
use crate::{drawing, table};

/// The content of the region `name`, given what stands there now.
///
/// # Errors
/// An unknown name, or a field without a sentence.
pub fn region(name: &str, old: &str) -> Result<String, String> {
    let of = match name {
        "sizes" => return Ok(sizes()),
        "zones" => return Ok(zones()),
        "Superblock" => Struct::of(Superblock::FIELDS),
        "RootDescriptor" => Struct::of(RootDescriptor::FIELDS),
        "Descriptor" => Struct::of(Descriptor::FIELDS),
        "SegmentHeader" => Struct::of(SegmentHeader::FIELDS),
        "SpillDescriptor" => Struct::of(SpillDescriptor::FIELDS),
        "AreaHeader" => Struct::of(AreaHeader::FIELDS),
        "RecordHeader" => Struct::of(RecordHeader::FIELDS),
        "NameHead" => Struct::of(NameHead::FIELDS),
        _ => return Err(format!("nothing is generated under the name {name:?}")),
    };
    let table = table::render(&of, old).map_err(|field| format!("{name}.{field} has no sentence"))?;
    Ok(format!("\n```text\n{}```\n\n{table}\n", drawing::render(&of)))
}

fn zones() -> String {
    let rows = [
        ("Superblock", 0, "two copies of the superblock, a page each"),
        ("Retired", Layout::retired(), "the cell of the retired LSN"),
        ("Roots", Layout::root(0), "registered directories"),
        ("Files", Layout::file(0), "managed files with their watermarks"),
    ];
    let mut out = String::from("\n| from byte | zone | what |\n|---:|---|---|\n");
    for (zone, at, what) in rows {
        out.push_str(&format!("| {at} | {zone} | {what} |\n"));
    }
    out.push_str("| next multiple of 64 KiB | Segments | the log |\n");
    out.push_str("| behind the last segment | Spilled | which slots of the spill area hold what, in a pool that has one |\n");
    out.push_str(&format!(
        "\n{ROOTS} root entries of {} bytes; {} bytes for a file entry.\n\n",
        Layout::root(1) - Layout::root(0),
        Layout::file(1) - Layout::file(0),
    ));
    out
}

fn sizes() -> String {
    let mut out = String::from(
        "\n| pool | file entries | log begins at | segments | of | log |\n|---:|---:|---:|---:|---:|---:|\n",
    );
    for shift in [24, 26, 28, 30, 34, 40] {
        let size = 1u64 << shift;
        let Some(layout) = Layout::for_size(size) else { continue };
        let log = u64::from(layout.segments) * u64::from(layout.segment_bytes);
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} | {:.1} % |\n",
            human(size),
            layout.files,
            layout.segments_at(),
            layout.segments,
            human(layout.segment_bytes.into()),
            log as f64 * 100.0 / size as f64,
        ));
    }
    out.push('\n');
    out
}

fn human(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| bytes >> shift > 0);
    unit.map_or(bytes.to_string(), |(shift, unit)| format!("{} {unit}", bytes >> shift))
}
