//! The guest's root file system: PostgreSQL and what else the host has installed, our programs, and every
//! library these need. One ext4 image, read-only, made without root and without mounting anything.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::packages::Packages;
use crate::tool;

const SESSION: &str = include_str!("../guest/session");
/// What the session is put together from.
const PARTS: [(&str, &str); 14] = [
    ("storage", include_str!("../guest/storage")),
    ("postgres", include_str!("../guest/postgres")),
    ("sqlite", include_str!("../guest/sqlite")),
    ("alone", include_str!("../guest/alone")),
    ("hosts", include_str!("../guest/hosts")),
    ("served", include_str!("../guest/served")),
    ("trying", include_str!("../guest/trying")),
    ("below", include_str!("../guest/below")),
    ("below-layout", include_str!("../guest/below-layout")),
    ("below-tier", include_str!("../guest/below-tier")),
    ("below-provision", include_str!("../guest/below-provision")),
    ("cases", include_str!("../guest/cases")),
    ("cases-block", include_str!("../guest/cases-block")),
    ("cases-files", include_str!("../guest/cases-files")),
];
const POSTGRES: &str = "/usr/lib/postgresql";
const PASSWD: &str = "root:x:0:0:root:/run:/bin/sh\npostgres:x:70:70:postgres:/run:/bin/sh\n";
const GROUP: &str = "root:x:0:\npostgres:x:70:\n";
/// A pool belongs to a machine; this is the guest's, at every boot. One of several changes the last digit.
const MACHINE_ID: &str = "5ea0a11500000000000000000000dead\n";
/// Our programs.
const PROGRAMS: [&str; 2] = ["seawall", "seawall-load"];
const PRELOAD: &str = "libseawall_preload.so";
/// From packages: where they are in there.
const UNPACKED: [&str; 5] =
    ["usr/bin/ndctl", "usr/bin/daxctl", "usr/bin/cxl", "sbin/mkfs.xfs", "sbin/xfs_repair"];
/// From the host: they are essential in the distribution.
const INSTALLED: [&str; 2] = ["mke2fs", "e2fsck"];

/// What only some guests have besides.
#[derive(Default)]
pub struct More {
    /// Our programs.
    pub ours: &'static [&'static str],
    /// The host's, each with its package.
    pub installed: &'static [(&'static str, &'static str)],
}

/// The tree while it is put together.
struct Tree<'a> {
    root: PathBuf,
    packages: &'a Packages,
    libraries: BTreeSet<PathBuf>,
}

/// Builds the image.
///
/// # Errors
/// A missing program or library.
pub fn build(packages: &Packages, release: &Path, work: &Path, image: &Path, more: &More) -> Result<()> {
    let root = work.join("rootfs");
    let _ = std::fs::remove_dir_all(&root);
    let mut tree = Tree { root, packages, libraries: BTreeSet::new() };
    tree.skeleton()?;
    tree.busybox()?;
    tree.postgres()?;
    for name in PROGRAMS.iter().chain(more.ours) {
        tree.program(&release.join(name), "usr/bin")?;
    }
    tree.program(&release.join(PRELOAD), "usr/lib/seawall")?;
    for name in UNPACKED {
        tree.program(&packages.file(name), "usr/bin")?;
    }
    for name in INSTALLED {
        tree.program(&tool::need(name, "e2fsprogs")?, "usr/bin")?;
    }
    for (name, package) in more.installed {
        tree.program(&tool::need(name, package)?, "usr/bin")?;
    }
    tree.libraries()?;
    tree.image(image)
}

impl Tree<'_> {
    fn skeleton(&self) -> Result<()> {
        let dirs = "bin dev proc sys run tmp var mnt data pmem keeper guest etc usr/bin usr/lib usr/share/zoneinfo lib64 \
                    lib/x86_64-linux-gnu";
        dirs.split(' ').try_for_each(|dir| tool::directory(&self.root.join(dir)))?;
        for (name, text) in [("passwd", PASSWD), ("group", GROUP), ("machine-id", MACHINE_ID)] {
            std::fs::write(self.root.join("etc").join(name), text)?;
        }
        self.copy(Path::new("/etc/mke2fs.conf"), "etc")?;
        for (name, text) in PARTS {
            std::fs::write(self.root.join("guest").join(name), text)?;
        }
        let session = self.root.join("session");
        std::fs::write(&session, SESSION)?;
        Ok(std::fs::set_permissions(session, std::fs::Permissions::from_mode(0o755))?)
    }

    fn busybox(&self) -> Result<()> {
        let busybox = self.packages.file("bin/busybox");
        self.copy(&busybox, "bin")?;
        let applets = tool::text(Command::new(busybox).arg("--list"))?;
        for applet in applets.lines().filter(|name| !matches!(*name, "busybox" | "mke2fs")) {
            symlink("busybox", self.root.join("bin").join(applet))?;
        }
        Ok(symlink("mke2fs", self.root.join("usr/bin/mkfs.ext4"))?)
    }

    /// The newest PostgreSQL the host has, at the place its programs look for their files.
    fn postgres(&mut self) -> Result<()> {
        let dirs = std::fs::read_dir(POSTGRES).context("PostgreSQL is missing: make deps")?.flatten();
        let version = |dir: PathBuf| Some((dir.file_name()?.to_str()?.parse::<u32>().ok()?, dir));
        let (number, dir) = dirs.filter_map(|e| version(e.path())).max().context("no PostgreSQL server")?;
        let share = PathBuf::from(format!("/usr/share/postgresql/{number}"));
        for from in [dir.join("bin"), dir.join("lib"), share] {
            let to = self.root.join(from.strip_prefix("/")?);
            tool::directory(to.parent().context("the path has no parent")?)?;
            tool::run(Command::new("cp").arg("-rL").arg(&from).arg(&to))?;
        }
        let lib = self.root.join(dir.strip_prefix("/")?).join("lib");
        // The compiler for queries would bring 100 MB along.
        for jit in ["llvmjit.so", "bitcode", "llvmjit_types.bc"] {
            let path = lib.join(jit);
            let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
        symlink(dir.join("bin"), self.root.join("postgresql"))?;
        for program in ["bin/postgres", "bin/initdb", "bin/psql", "bin/pgbench", "bin/pg_amcheck"] {
            self.needs(&dir.join(program))?;
        }
        Ok(())
    }

    fn program(&mut self, from: &Path, to: &str) -> Result<()> {
        self.copy(from, to)?;
        self.needs(from)
    }

    fn copy(&self, from: &Path, to: &str) -> Result<()> {
        let name = from.file_name().with_context(|| format!("{} has no name", from.display()))?;
        let dir = self.root.join(to);
        tool::directory(&dir)?;
        std::fs::copy(from, dir.join(name)).with_context(|| from.display().to_string())?;
        Ok(())
    }

    /// Notes the libraries of a program, those of the packages before the host's.
    fn needs(&mut self, program: &Path) -> Result<()> {
        let dirs = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|dir| self.packages.file(dir));
        let path = std::env::join_paths(dirs)?;
        let listed = tool::text(Command::new("ldd").arg(program).env("LD_LIBRARY_PATH", path))?;
        for line in listed.lines() {
            ensure!(!line.contains("not found"), "{}: {}", program.display(), line.trim());
            let found = line.split_whitespace().find(|word| word.starts_with('/'));
            self.libraries.extend(found.map(PathBuf::from));
        }
        Ok(())
    }

    fn libraries(&self) -> Result<()> {
        for library in &self.libraries {
            let loader = library.file_name().is_some_and(|name| name == "ld-linux-x86-64.so.2");
            self.copy(library, if loader { "lib64" } else { "lib/x86_64-linux-gnu" })?;
        }
        Ok(())
    }

    fn image(&self, image: &Path) -> Result<()> {
        let _ = std::fs::remove_file(image);
        let used = tool::text(Command::new("du").arg("-sm").arg(&self.root))?;
        let mib: u64 = used.split_whitespace().next().context("du printed nothing")?.parse()?;
        let size = format!("{}M", mib + mib / 5 + 16);
        let mut make = Command::new(tool::need("mke2fs", "e2fsprogs")?);
        make.args(["-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d"]).arg(&self.root);
        tool::run(make.arg(image).arg(size))?;
        Ok(std::fs::remove_dir_all(&self.root)?)
    }
}
