#!/usr/bin/env bash
# A folder that runs where the libraries are missing, such as a GPU node: rung, its plugins, config/
# and the shared libraries that a bare system lacks, found through $ORIGIN.
#
#   scripts/bundle.sh FOLDER [BUILD_DIR]
#
# BUNDLE_CUDA=1 takes NVRTC and the device headers along (about 130 MB); without it the other machine
# needs a CUDA toolkit. libcurl, which only requests to models need, is not taken along. The machine that builds must not have a newer C library than the one that runs.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:?usage: bundle.sh FOLDER [BUILD_DIR]}
build=${2:-build}
rm -rf "$folder"
cmake --install "$build" --prefix "$folder" --strip >/dev/null
rm -rf "$folder/include" "$folder/lib/cmake" "$folder/lib/rung/cuda"

# What every Linux has; anything else comes along.
for file in "$folder/bin/rung" "$folder"/lib/rung/plugins/*.so; do
    ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
done | sort -u | grep -v -E '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | while read -r library; do
    cp -L "$library" "$folder/lib/"
done

if [ "${BUNDLE_CUDA:-}" = 1 ]; then
    cuda=$(scripts/cuda.sh find "$build")
    [ -n "$cuda" ] || { echo "bundle: no NVRTC found to take along" >&2; exit 1; }
    mkdir -p "$folder/lib/rung/cuda/lib"
    for library in "$cuda"/lib*/libnvrtc.so.[0-9]* "$cuda"/lib*/libnvrtc-builtins.so.[0-9]*; do
        [ ! -e "$library" ] || cp -L "$library" "$folder/lib/rung/cuda/lib/"
    done
    cp -rL "$cuda/include" "$folder/lib/rung/cuda/include"
fi
LD_LIBRARY_PATH='' "$folder/bin/rung" --version
echo "bundle: $folder, $(du -sh "$folder" | cut -f1)"
