#!/usr/bin/env bash
# Installs what is missing and builds the release tree into build/. Quiet when nothing is to do.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/bootstrap.sh run build
if [ ! -e build/build.ninja ]; then
    cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DRUNG_TESTS=OFF
fi
ninja -C build --quiet
