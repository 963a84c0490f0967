#!/bin/sh
# Emits, builds and times the model of config.json on one host rank.
#   run.sh PARC [FOLDER]     the compiler, and where to build (default: build)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
parc=${1:?usage: run.sh PARC [FOLDER]}
out=${2:-build}
export OPENBLAS_NUM_THREADS=1
mkdir -p "$out"
"$parc" compile "$here" --mesh 1x1x1 --batch 4 --seq 256 --micro-batches 1 \
  --dtype f32 -q -o "$out/emitted"
cmake -S "$here" -B "$out/build" -DEMITTED="$(cd "$out/emitted" && pwd)" >/dev/null
cmake --build "$out/build" -j2 >/dev/null
"$out/build/step_vs_gemm"
