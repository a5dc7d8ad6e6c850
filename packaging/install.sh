#!/bin/sh
# Puts what was built where it belongs: for `make install`, and for the package, which must agree with it.
#
# install.sh BUILD PREFIX DESTDIR: BUILD has the programs (target/release); PREFIX is /usr or /usr/local.
set -eu
build=$1 prefix=$2 destdir=$3
here=$(dirname "$0")
root=$destdir$prefix
# systemd looks below both prefixes; others must tell it themselves.
units=$root/lib/systemd/system
generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT

install -D -m 755 "$build/seawall" "$root/bin/seawall"
# The lab and its loads: `seawall lab` looks for the one beside itself, and that for the other.
install -m 755 "$build/seawall-lab" "$build/seawall-load" "$root/bin"
install -D -m 644 "$build/libseawall_preload.so" "$root/lib/seawall/libseawall_preload.so"

install -d "$units" "$root/lib/tmpfiles.d" "$root/lib/sysusers.d"
for unit in seawalld@.service seawall-mount@.service seawall-disk@.service seawall-recover.service \
    seawall-keeper.service; do
    sed "s|@BINDIR@|$prefix/bin|" "$here/systemd/$unit" > "$units/$unit"
    chmod 644 "$units/$unit"
done
# A part of every start of the machine, without anybody's enabling it.
install -d "$units/basic.target.wants"
ln -sf ../seawall-recover.service "$units/basic.target.wants/seawall-recover.service"
install -m 644 "$here/systemd/seawall.tmpfiles" "$root/lib/tmpfiles.d/seawall.conf"
install -m 644 "$here/systemd/seawall.sysusers" "$root/lib/sysusers.d/seawall.conf"

# What cluster managers call for a log that keepers keep. Pacemaker looks in one place, whatever the prefix.
install -D -m 755 "$here/pacemaker/seawall-log" "$destdir/usr/lib/ocf/resource.d/seawall/log"
install -D -m 644 "$here/libvirt/disk.xml" "$root/share/seawall/libvirt/disk.xml"
install -D -m 755 "$here/hooks/seawall-freeze-hook" "$root/share/seawall/hooks/seawall-freeze-hook"
install -D -m 755 "$here/patroni/seawall-pre-promote" "$root/share/seawall/patroni/seawall-pre-promote"

# mount -t fuse.seawall, umount, fstab: mount(8) looks in /sbin and /usr/sbin only.
install -d "$root/sbin"
for name in mount.fuse.seawall umount.fuse.seawall; do
    ln -sf ../bin/seawall "$root/sbin/$name"
done

"$build/seawall" generate --man "$generated/man" --completions "$generated/completions"
install -d "$root/share/man/man1"
for page in "$generated"/man/*.1; do
    gzip -9n < "$page" > "$root/share/man/man1/${page##*/}.gz"
done
install -D -m 644 "$generated/completions/bash/seawall.bash" "$root/share/bash-completion/completions/seawall"
install -D -m 644 "$generated/completions/zsh/_seawall" "$root/share/zsh/vendor-completions/_seawall"
install -D -m 644 "$generated/completions/fish/seawall.fish" "$root/share/fish/vendor_completions.d/seawall.fish"
