#!/usr/bin/env bash
# NVRTC and the CUDA device headers: where they are, or getting them.
#
#   scripts/cuda.sh find BUILD_DIR     prints the folder that will be used; nothing when there is none
#   scripts/cuda.sh fetch BUILD_DIR    PyPI wheels into BUILD_DIR/lib/rung/cuda
#
# rung itself looks in RUNG_CUDA_HOME, then in lib/rung/cuda beside its plugins, then in
# /usr/local/cuda. A toolkit found elsewhere (CUDA_HOME, /usr/local/cuda-*, beside an nvcc on the PATH)
# is linked as BUILD_DIR/lib/rung/cuda. RUNG_CUDA=wheels takes the wheels whatever is installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
action=${1:?usage: cuda.sh find|fetch BUILD_DIR}
build=${2:?usage: cuda.sh find|fetch BUILD_DIR}
own=$build/lib/rung/cuda

usable() # FOLDER: it holds the library and the headers
{
    [ -e "$1/include/cuda_fp16.h" ] &&
        { compgen -G "$1/lib64/libnvrtc.so*" || compgen -G "$1/lib/libnvrtc.so*"; } >/dev/null
}

toolkit()
{
    local nvcc folder
    nvcc=$(command -v nvcc || true)
    [ -z "$nvcc" ] || nvcc=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
    for folder in "${RUNG_CUDA_HOME:-}" "${CUDA_HOME:-}" /usr/local/cuda \
        $(compgen -G '/usr/local/cuda-*' | sort -rV) "$nvcc"; do
        if [ -n "$folder" ] && usable "$folder"; then
            echo "$folder"
            return
        fi
    done
}

link_unless_found() # FOLDER
{
    if [ "$1" != "${RUNG_CUDA_HOME:-}" ] && [ "$1" != /usr/local/cuda ]; then
        mkdir -p "$build/lib/rung"
        ln -sfn "$1" "$own"
    fi
}

find_cuda()
{
    local folder
    if [ -e "$own/complete" ]; then
        echo "$own"
        return
    fi
    [ "${RUNG_CUDA:-}" = wheels ] && return
    folder=$(toolkit)
    if [ -n "$folder" ]; then
        link_unless_found "$folder"
        echo "$folder"
    fi
}

case $action in
find) find_cuda ;;
fetch) exec python3 "$here/cuda_wheels.py" "$own" ;;
*) echo "cuda.sh: find or fetch, not '$action'" >&2; exit 2 ;;
esac
