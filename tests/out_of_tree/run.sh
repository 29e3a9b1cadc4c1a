#!/bin/sh
# Builds the two plugins here against an installed rung and runs them:
#   run.sh PREFIX BUILD_DIR
# The run is skipped, loudly, when PREFIX holds no rung executable. Any failure is the exit status.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: run.sh PREFIX BUILD_DIR" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(cd "$1" && pwd)
mkdir -p "$2"
build=$(cd "$2" && pwd)

cmake -S "$here" -B "$build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=RelWithDebInfo
cmake --build "$build" -j 2

for plugin in verifier_rowsum search_greedy; do
    exported=$(nm -D --defined-only "$build/$plugin.so" | wc -l)
    if [ "$exported" -ne 1 ]; then
        echo "out_of_tree: $plugin.so exports $exported symbols, not one" >&2
        exit 1
    fi
done

rung=$prefix/bin/rung
if [ ! -x "$rung" ]; then
    echo "out_of_tree: SKIPPED the run: no $rung" >&2
    exit 0
fi
RUNG_PLUGIN_PATH=$build
export RUNG_PLUGIN_PATH
"$rung" plugin info "$build/verifier_rowsum.so"
"$rung" plugin info "$build/search_greedy.so"

cat > "$build/pipeline.cfg" <<END
llm = ( { name = "writer"; plugin = "catalog"; } );
codegen = { plugin = "cuda"; };
search = { plugin = "greedy"; first = 2; steps = 1; };
workers = ( { device = "ptx"; count = 1; } );
rungs = ( { plugin = "numeric"; }, { plugin = "rowsum"; tolerance = 1e-4; } );
timers = ( { plugin = "model"; } );
END
task=$prefix/share/rung/tasks/softmax_small.cfg
rm -rf "$build/run" "$build/rejected"
"$rung" run "$build/pipeline.cfg" --task "$task" --out "$build/run" --json > "$build/run.json"
cat "$build/run.json"
"$rung" show "$build/run"
grep -q '"accepted"' "$build/run.json"

# The verifier must have a say: with another sum every kernel is rejected, with its code.
status=0
"$rung" run "$build/pipeline.cfg" --task "$task" --set rungs.rowsum.sum=2.0 --out "$build/rejected" \
    --json > "$build/rejected.json" || status=$?
cat "$build/rejected.json"
if [ "$status" -ne 1 ] || ! grep -q '"rowsum.mismatch"' "$build/rejected.json"; then
    echo "out_of_tree: the verifier let wrong sums pass (status $status)" >&2
    exit 1
fi
echo "out_of_tree: fine"
