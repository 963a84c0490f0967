#!/bin/sh
# numbers.sh CXX BUILD PYTHON TOLERANCE MODEL FLAGS...: emits, builds without
# much optimisation, runs two steps and compares with `parc run`.
set -eu
cxx=$1 build=$2 python=$3 tolerance=$4 model=$5
shift 5
here=$(cd "$(dirname "$0")" && pwd)
rm -rf out emitted.safetensors run.safetensors
parc compile "$model" "$@" -q -o out
for file in out/src/*.cpp; do
  "$cxx" -std=c++17 -O1 -fopenmp-simd -I out/runtime/include -c "$file" -o "$file.o"
done
"$cxx" out/src/*.o "$build/lib/libparc_runtime.a" -lopenblas -lpthread -o train
weights=
[ -f "$model/model.safetensors" ] && weights="--weights $model/model.safetensors"
./train --steps 2 --seed 3 $weights --save emitted.safetensors
parc run "$model" "$@" --steps 2 --seed 3 --save run.safetensors -q
"$python" "$here/compare.py" emitted.safetensors run.safetensors "$tolerance"
