#!/usr/bin/env bash
# Every plugin of a folder exports exactly one symbol, its entry:  scripts/exports.sh FOLDER
set -euo pipefail
folder=${1:?usage: exports.sh FOLDER}
failed=0
count=0
for file in "$folder"/*.so; do
    [ -e "$file" ] || continue
    count=$((count + 1))
    exported=$(nm -D --defined-only "$file" | awk '{print $3}' | sort | tr '\n' ' ')
    if [ "$exported" != "rung_plugin_v0 " ]; then
        echo "exports: $file exports: $exported" >&2
        failed=1
    fi
done
if [ $count = 0 ]; then
    echo "exports: no plugin in $folder" >&2
    exit 1
fi
exit $failed
