#!/bin/sh
# Builds and runs the benchmark of the reshard search.
#   run.sh [FOLDER]     where to build (default: build)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-build}
cmake -S "$here" -B "$out" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$out" -j2 >/dev/null
"$out/reshard_search"
