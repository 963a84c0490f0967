# Sourced by ./run and ./test: sets up, configures, and gives `build`.
# Expects `root` to be the checkout.

export CCACHE_SLOPPINESS=pch_defines,time_macros
build_dir="$root/build"
jobs="$(nproc)"

say() { echo "parc: $*" >&2; }

# Runs a command silently, and shows what it printed if it failed.
quietly() {
  local log="$build_dir/$1.log"
  shift
  mkdir -p "$build_dir"
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

prepare() {
  bash "$root/scripts/setup.sh"
  # Ninja configures again by itself when a CMake file changes.
  if [ ! -f "$build_dir/build.ninja" ]; then
    say "configuring build/"
    quietly configure cmake -S "$root" -B "$build_dir" -G Ninja \
      -DCMAKE_BUILD_TYPE=Release
  fi
}

# build TARGET...: with ninja's one status line on a terminal, else silent.
build() {
  if [ -t 2 ]; then
    ninja -C "$build_dir" -j "$jobs" "$@" >&2
  else
    quietly build ninja -C "$build_dir" -j "$jobs" "$@"
  fi
}
