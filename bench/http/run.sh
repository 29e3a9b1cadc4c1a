#!/usr/bin/env bash
# Many event streams at once through core/http, from a local server that holds the pace.
#   bench/http/run.sh [STREAMS [TOKENS [PER_SECOND]]]      default 512 streams of 2000 tokens at 50 a second (40 s)
# Ends with 1 when a token is missing or the process that reads them takes 60 % of a core, 150 MB, or 5 ms from a
# reply's last byte to the return. Two cores: one for the server.
set -euo pipefail
cd "$(dirname "$0")/../.."
tree=${TREE:-build-bench}
if [ ! -e "$tree/build.ninja" ]; then
    cmake -S . -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo >/dev/null
fi
ninja -C "$tree" --quiet rung_http
flags=(-O2 -Wall -Wextra -std=gnu11 -D_GNU_SOURCE)
${CC:-cc} "${flags[@]}" bench/http/mock.c -o "$tree/bench_http_mock"
${CC:-cc} "${flags[@]}" -I core -I core/include bench/http/driver.c "$tree/core/http/librung_http.a" \
    "$tree/core/plugin/librung_plugin.a" "$tree/core/base/librung_base.a" \
    $(pkg-config --cflags --libs libcjson libmd) -ldl -lpthread -lm -o "$tree/bench_http_driver"
ulimit -n 4096
coproc MOCK { exec "$tree/bench_http_mock"; }
read -r port <&"${MOCK[0]}"
"$tree/bench_http_driver" "$port" "${1:-512}" "${2:-2000}" "${3:-50}" && status=0 || status=$?
exec {MOCK[1]}>&-
wait
exit "$status"
