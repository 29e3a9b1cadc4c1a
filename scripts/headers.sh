#!/usr/bin/env bash
# Each header of the plugin ABI compiles alone, twice over, as C11, C17 and C++17, with -pedantic.
set -uo pipefail
cd "$(dirname "$0")/../core/include"
failed=0

try() # HEADER COMPILER LANGUAGE STANDARD
{
    printf '#include <%s>\n#include <%s>\n' "$1" "$1" |
        "$2" -x "$3" "-std=$4" -pedantic -Wall -Wextra -Werror -I. -fsyntax-only - && return
    echo "headers: $1 does not compile alone as $4 with $2" >&2
    failed=1
}

for header in rung/*.h; do
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        try "$header" $compiler c c11
        try "$header" $compiler c c17
        try "$header" "$(echo $compiler | sed "s/gcc/g++/; s/clang/clang++/")" c++ c++17
    done
done
exit $failed
