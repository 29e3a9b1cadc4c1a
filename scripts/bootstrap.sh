#!/usr/bin/env bash
# Installs what building rung needs and this machine lacks, and nothing else.
#
#   scripts/bootstrap.sh run|test|fuzz [BUILD_DIR]
#
# run   compiler, CMake, libraries, NVRTC with the CUDA device headers
# test  the same, cmocka, g++, clang
# fuzz  the same as test, and clang's fuzzing runtime
#
# Packages come from apt, as root or through sudo. Where nothing is missing it prints nothing and
# takes some tens of milliseconds. On a system without apt it names what is missing and stops.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
goal=${1:?usage: bootstrap.sh run|test|fuzz [BUILD_DIR]}
build=${2:-build}
missing=()

need() # PACKAGE COMMAND...: the package unless the command succeeds
{
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

need gcc command -v "${CC:-cc}"
need libc6-dev test -e /usr/include/stdio.h
need cmake command -v cmake
need ninja-build command -v ninja
need pkg-config command -v pkg-config
need python3 command -v python3
need libconfig-dev pkg-config --exists libconfig
need libcjson-dev pkg-config --exists libcjson
need libcmark-dev pkg-config --exists libcmark
need libsqlite3-dev pkg-config --exists sqlite3
need libmd-dev pkg-config --exists libmd
need libcurl4-openssl-dev pkg-config --exists libcurl
if [ "$goal" != run ]; then
    need libcmocka-dev pkg-config --exists cmocka
    need g++ command -v g++
    need clang command -v clang
    need openssl command -v openssl
fi

install_packages() # PACKAGE...
{
    local as_root=()
    if ! command -v apt-get >/dev/null; then
        echo "bootstrap: this system has no apt-get; install by hand what Debian calls: $*" >&2
        exit 3
    fi
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "bootstrap: missing: $*" >&2
            echo "bootstrap: neither root nor sudo here; as root run: apt-get install $*" >&2
            exit 3
        fi
        as_root=(sudo)
    fi
    echo "bootstrap: installing with apt-get: $*"
    ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq update
    ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@" >/dev/null
}

if [ ${#missing[@]} -gt 0 ]; then
    install_packages "${missing[@]}"
fi

fuzzer_links() { echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return !d + !n; }' |
    clang -x c - -fsanitize=fuzzer,address -o /dev/null; }

# The runtime's package carries clang's version in its name.
if [ "$goal" = fuzz ] && ! fuzzer_links 2>/dev/null; then
    install_packages "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
fi

cuda=$("$here/cuda.sh" find "$build")
if [ -z "$cuda" ]; then
    lacking=()
    python3 -m pip --version >/dev/null 2>&1 || lacking+=(python3-pip)
    test -e /etc/ssl/certs/ca-certificates.crt || lacking+=(ca-certificates)
    [ ${#lacking[@]} -eq 0 ] || install_packages "${lacking[@]}"
    "$here/cuda.sh" fetch "$build"
fi
