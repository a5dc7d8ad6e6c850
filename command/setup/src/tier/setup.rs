//! The kernel moves pages between kinds of memory: now, and after each start.

use super::damon;
use super::nodes::{Nodes, TIERING};
use crate::error::Error;
use crate::host::Host;
use crate::plan::{Act, Of, Plan, Step};

const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";
const SYSCTL: &str = "/etc/sysctl.d/90-seawall-tier.conf";
const TMPFILES: &str = "/etc/tmpfiles.d/seawall-tier.conf";

/// vma_policy_mof() in mm/mempolicy.c: a shared mapping without a policy of its own is left alone.
const SHARED: &str = "Heaps (InnoDB's pool, Redis) move both ways. Shared memory (PostgreSQL's \
                      shared_buffers) goes to slower memory and does not come back this way. DAMON brings it \
                      back (Linux 6.11, if nothing else uses DAMON); or give PostgreSQL --policy fast";

/// Draws the plan.
///
/// # Errors
/// There is one kind of memory only, or the kernel cannot.
pub fn plan(host: &dyn Host) -> Result<Plan, Error> {
    let nodes = Nodes::read(host);
    if nodes.slow().is_empty() {
        return Err(Error::refused(
            "all memory here is of one kind, so there is nothing to move: seawall provision … --mode memory makes CXL or persistent \
             memory a node",
        ));
    }
    let Some(demotes) = nodes.demotes else {
        return Err(Error::refused(
            "this kernel cannot move pages to slower memory (that takes Linux 5.15 or later)",
        ));
    };
    let former = host.root().text(BALANCING).unwrap_or_else(|| "0".into());
    let bits = former.parse::<u32>().unwrap_or(0);
    let mut plan = Plan::new(Of::Tier, "tier");
    plan.about.push(about(&nodes));
    let damon = damon::steps(host, &nodes);
    if damon.is_empty() {
        plan.about.push(SHARED.into());
    }
    // Moving pages between nodes of one kind is another bit, and stays as it was.
    plan.steps.extend(set(
        "pages in use go to fast memory",
        BALANCING,
        &(bits | TIERING).to_string(),
        &former,
    ));
    plan.steps.push(kept(SYSCTL, &format!("kernel.numa_balancing = {}\n", bits | TIERING)));
    let (yes, no) = ("1", if demotes { "1" } else { "0" });
    plan.steps.extend(set(
        "pages that are not in use go to slower memory, before they go to the disk",
        DEMOTION,
        yes,
        no,
    ));
    plan.steps.push(kept(TMPFILES, &format!("w {DEMOTION} - - - - 1\n")));
    plan.steps.extend(damon);
    plan.next.push(
        "seawall tier run --policy tiered -- COMMAND       # or --policy large: the pool in slower memory"
            .into(),
    );
    Ok(plan)
}

fn about(nodes: &Nodes) -> String {
    let sum = |numbers: &[u32]| -> u64 {
        nodes.nodes.iter().filter(|node| numbers.contains(&node.number)).map(|node| node.bytes >> 20).sum()
    };
    let (fast, slow) = (sum(&nodes.fast()), sum(&nodes.slow()));
    format!(
        "{fast} MiB of fast memory, {slow} MiB of slower memory (1 to {:.1})",
        slow as f64 / fast.max(1) as f64
    )
}

fn set(title: &str, path: &str, value: &str, former: &str) -> Option<Step> {
    let act = |value: &str| Act::Set { path: path.into(), value: value.to_owned() };
    (value != former).then(|| Step::new(title, act(value)).undo(act(former)))
}

fn kept(path: &str, text: &str) -> Step {
    Step::file("the same after each start", path.into(), text)
}
