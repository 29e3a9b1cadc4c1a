#!/bin/sh
# chroot.sh TEST WORKER PLUGINS: a root folder with the worker, its libraries and its plugins and
# nothing else (no /proc, no /dev), then TEST with a launch prefix into it.
set -eu
test=$1 worker=$2 plugins=$3

skip() {
    echo "SKIPPED: $*" >&2
    exit 77
}

if ldd "$worker" | grep -Eq 'lib[at]san'; then
    skip "a sanitizer's runtime needs /proc, which the other root folder does not have"
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir "$root/bin" "$root/plugins"
cp "$worker" "$root/bin/worker_main"
cp "$plugins"/*.so "$root/plugins/"
for file in "$worker" "$plugins"/*.so; do
    ldd "$file" | grep -o '/[^ ]*'
done | sort -u | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
if chroot "$root" /bin/worker_main nothing 2>/dev/null; [ $? -eq 2 ]; then
    launch="chroot $root"
elif unshare -r chroot "$root" /bin/worker_main nothing 2>/dev/null; [ $? -eq 2 ]; then
    launch="unshare -r chroot $root"
else
    skip "neither chroot nor unshare -r is permitted here"
fi
RUNG_PLUGIN_PATH=/plugins TEST_LAUNCH="$launch" "$test"
