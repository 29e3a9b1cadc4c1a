#!/usr/bin/env bash
# The engine alone: CPU and memory of the orchestrator over many candidates. Replies come from a generated
# cassette; compiler, device, verifier and timer are the test suite's fakes, which do no work.
#   bench/engine/run.sh [CANDIDATES]      default 10000; limits: 5 ms CPU a candidate, 64 MB
set -euo pipefail
cd "$(dirname "$0")/../.."
tree=build-bench
if [ ! -e $tree/build.ninja ]; then
    cmake -S . -B $tree -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo >/dev/null
fi
ninja -C $tree --quiet rung worker_main llm_replay codegen_cuda search_branching
exec python3 bench/engine/measure.py $tree "${1:-10000}"
