#!/usr/bin/env bash
# Makes what is released from a checkout, below dist/ or the folder that OUT names:
#
#   deploy/build.sh [binaries | sbom | deb | image]...      without a name: all of them
#
#   binaries   linux and darwin, amd64 and arm64, and SHA256SUMS
#   sbom       the modules in the binary as CycloneDX, read from the binary itself
#   deb        packages for Debian and Ubuntu, amd64 and arm64 (needs dpkg-deb; ARCH names one;
#              MAINTAINER="Name <address>" is who packages it)
#   image      redlock-proxy:VERSION, with docker or buildah
#
# The same sources, commit and Go give the same files, but for the time in the SBOM.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^const number = "\(.*\)"$/\1/p' proxy/version.go)
[ -n "$version" ] || { echo "build.sh: proxy/version.go has no number" >&2; exit 1; }
commit=$(git rev-parse HEAD 2>/dev/null || true)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
maintainer=${MAINTAINER:-redlock-proxy <nobody@redlock-proxy.invalid>}
out=${OUT:-dist}
mkdir -p "$out"
out=$(cd "$out" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

program() { # OS ARCH FILE
  CGO_ENABLED=0 GOOS=$1 GOARCH=$2 go build -trimpath -ldflags="-s -w -X redlock-proxy/proxy.commit=$commit" -o "$3" .
}

binaries() {
  local os arch
  for os in linux darwin; do
    for arch in amd64 arm64; do
      program "$os" "$arch" "$out/redlock-proxy-$version-$os-$arch"
    done
  done
  (cd "$out" && sha256sum redlock-proxy-"$version"-{linux,darwin}-{amd64,arm64} >SHA256SUMS)
}

sbom() {
  program linux amd64 "$scratch/redlock-proxy"
  go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin -json -std -noserial \
    -version "$version" -output "$out/redlock-proxy-$version.cdx.json" "$scratch/redlock-proxy"
}

# doc FILE... compresses files into the package's documentation.
doc() {
  local file
  for file in "$@"; do
    gzip -9n <"$file" >"$root/usr/share/doc/redlock-proxy/$(basename "$file").gz"
  done
}

deb() {
  local arch date root units
  date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)
  program "$(go env GOHOSTOS)" "$(go env GOHOSTARCH)" "$scratch/here" # tells its flags to the manual page
  for arch in ${ARCH:-amd64 arm64}; do
    root=$scratch/deb-$arch
    units=$root/usr/lib/systemd/system
    install -d "$root"/{DEBIAN,etc/redlock-proxy} "$root"/usr/{bin,lib/sysusers.d,share/{lintian/overrides,man/man8}} \
      "$root/usr/share/doc/redlock-proxy" "$units"
    program linux "$arch" "$root/usr/bin/redlock-proxy"

    sed 's,/usr/local/bin/,/usr/bin/,; /^# Copy the binary/,/^#$/d' "deploy/systemd/redlock-proxy@.service" >"$units/redlock-proxy@.service"
    sed '/^#/d; s/ (admin port %i)//; s/ -admin 127.0.0.1:%i//' "$units/redlock-proxy@.service" >"$units/redlock-proxy.service"
    echo 'u redlock-proxy - "redlock-proxy"' >"$root/usr/lib/sysusers.d/redlock-proxy.conf"
    # Without embedded servers: those forget all locks when the process ends. So the proxy
    # does not start before somebody names the servers.
    sed -e '/^# yaml-language-server/d' -e 's/^upstream: embedded$/#upstream: redis:\/\/10.0.0.9:6379/' -e 's/^masters: embedded$/#masters: [redis:\/\/10.0.0.1:6379, redis:\/\/10.0.0.2:6379, redis:\/\/10.0.0.3:6379]/' \
      config.yaml >"$root/etc/redlock-proxy/config.yaml"
    echo /etc/redlock-proxy/config.yaml >"$root/DEBIAN/conffiles"

    "$scratch/here" -help 2>&1 | awk '/^  -/ {print ".TP"; sub(/^  /, ""); gsub(/-/, "\\-"); print ".B " $0; next} /^    \t/ {sub(/^ *\t/, ""); gsub(/-/, "\\-"); print}' >"$scratch/options"
    sed -e "s/@DATE@/$date/; s/@VERSION@/$version/" -e "/^@OPTIONS@$/{r $scratch/options
d}" deploy/debian/redlock-proxy.8 | gzip -9n >"$root/usr/share/man/man8/redlock-proxy.8.gz"

    cp deploy/*.md "$root/usr/share/doc/redlock-proxy/" # not compressed, for they link to each other
    doc deploy/LICENCES.txt
    cp deploy/debian/copyright "$root/usr/share/doc/redlock-proxy/copyright"
    cp deploy/debian/overrides "$root/usr/share/lintian/overrides/redlock-proxy"
    printf 'redlock-proxy (%s) stable; urgency=medium\n\n  * CHANGELOG.md says what is new.\n\n -- %s  %s\n' \
      "$version" "$maintainer" "$(date -uR -d "@$SOURCE_DATE_EPOCH")" >"$scratch/changelog"
    doc "$scratch/changelog"

    cat >"$root/DEBIAN/control" <<-END
	Package: redlock-proxy
	Version: $version
	Architecture: $arch
	Maintainer: $maintainer
	Installed-Size: $(du -sk "$root" | cut -f1)
	Depends: systemd
	Suggests: redis-server
	Section: net
	Priority: optional
	Description: Redis proxy that makes locks Redlock
	 Applications point at this proxy instead of their Redis. Commands on lock keys
	 go to several independent Redis masters, and a majority decides, so a lock
	 survives the loss of a server. Every other command goes to the Redis that is
	 there.
	END
    install -m 755 deploy/debian/{postinst,prerm,postrm} "$root/DEBIAN/"
    (cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    chmod -R u=rwX,go=rX "$root"
    dpkg-deb --root-owner-group -Zxz --build "$root" "$out/redlock-proxy_${version}_$arch.deb" >/dev/null
  done
}

image() {
  local build=(docker build)
  docker info >/dev/null 2>&1 || build=(buildah build --format docker)
  command -v "${build[0]}" >/dev/null || { echo "build.sh: the image needs docker or buildah" >&2; exit 1; }
  "${build[@]}" --build-arg "VERSION=$version" --build-arg "COMMIT=$commit" -t "redlock-proxy:$version" .
}

[ $# -gt 0 ] || set -- binaries sbom deb image
for what; do
  case $what in
  binaries | sbom | deb | image) echo "== $what" && "$what" ;;
  *) echo "usage: deploy/build.sh [binaries | sbom | deb | image]..." >&2; exit 2 ;;
  esac
done
ls -l "$out"
