#!/bin/sh
# Builds the Debian package from what `make build` made, with dpkg-deb alone.
#
# build.sh BUILD VERSION OUT: BUILD has the programs, OUT is the directory that gets seawall_VERSION_ARCH.deb.
set -eu
build=$1 version=$2 out=$3
here=$(dirname "$0")
top=$here/../..
arch=$(dpkg --print-architecture)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"
umask 022

"$here/../install.sh" "$build" /usr "$tree"
strip --strip-unneeded "$tree"/usr/bin/seawall* "$tree/usr/lib/seawall/libseawall_preload.so"

doc=$tree/usr/share/doc/seawall
install -d "$doc" "$tree/DEBIAN" "$tree/usr/share/lintian/overrides"
install -m 644 "$here/copyright" "$doc/copyright"
for page in README.md docs/README.md docs/*/*.md; do
    install -D -m 644 "$top/$page" "$doc/$page"
done
gzip -9n < "$top/CHANGELOG.md" > "$doc/changelog.gz"
maintainer=$(sed -n 's/^Maintainer: //p' "$here/control")
date=$(date -R -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}")
printf 'seawall (%s) unstable; urgency=medium\n\n  * What changed is in changelog.gz.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$date" | gzip -9n > "$doc/changelog.Debian.gz"
install -m 644 "$here/lintian-overrides" "$tree/usr/share/lintian/overrides/seawall"
cp -r "$here/../container" "$doc/examples"
find "$doc" -type f -exec chmod 644 {} +

size=$(du -sk --exclude=DEBIAN "$tree" | cut -f1)
sed -e "s|@VERSION@|$version|" -e "s|@ARCH@|$arch|" -e "s|@SIZE@|$size|" "$here/control" > "$tree/DEBIAN/control"
for script in preinst prerm postinst postrm; do
    [ ! -e "$here/$script" ] || install -m 755 "$here/$script" "$tree/DEBIAN/$script"
done
(cd "$tree" && find usr -type f | LC_ALL=C sort | xargs md5sum > DEBIAN/md5sums)

mkdir -p "$out"
# xz: what every Debian and Ubuntu can unpack.
dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/seawall_${version}_$arch.deb"
