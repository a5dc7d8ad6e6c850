//! What a container gives a database: a layer that goes away with it, and little shared memory.

use std::path::Path;

use crate::finding::{Finding, Sure};
use crate::view::View;

/// Docker's and Kubernetes's default.
const SMALL: u64 = 64 << 20;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let layer = view.places.iter().find(|place| place.is_on(|mount| mount.kind == "overlay")).map(|place| {
        Finding::durability("data-in-container-layer", place.path.display().to_string())
            .what(format!("{} lies in the container's own layer (overlay)", place.path.display()))
            .why(
                "The data is removed with the container, and the first write to a file of the image copies \
                 the whole file",
            )
            .type_in("docker run -v VOLUME:DIRECTORY …")
    });
    let memory = shared_memory(view).filter(|bytes| *bytes <= SMALL).map(|bytes| {
        Finding::speed("dev-shm-small", "/dev/shm")
            .what(format!("/dev/shm has {} MiB", bytes >> 20))
            .why("PostgreSQL's parallel queries take their memory there and fail with \"could not resize shared memory segment\"")
            .sure(Sure::Medium, "it depends on work_mem and on how many queries run at once")
            .type_in("docker run --shm-size=1g …        # Kubernetes: an emptyDir with medium: Memory on /dev/shm")
    });
    layer.into_iter().chain(memory).collect()
}

/// Without a size a tmpfs has half of the RAM.
fn shared_memory(view: &View<'_>) -> Option<u64> {
    let mount = view.machine.mounts.iter().rev().find(|mount| mount.point == Path::new("/dev/shm"))?;
    let size = mount.value("size")?;
    let digits = size.trim_end_matches(|c: char| c.is_alphabetic());
    let factor = match &size[digits.len()..] {
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "" => 1,
        _ => return None,
    };
    Some(digits.parse::<u64>().ok()? * factor)
}
