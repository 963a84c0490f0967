#!/usr/bin/env bash
# Installs what parc's build and tests need and this machine lacks, from the
# distribution's packages. Does nothing, quickly, when all of it is there.
# Usage: scripts/setup.sh [--check]      --check only tells what is missing
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache python3
  libmlir-22-dev llvm-22-dev mlir-22-tools llvm-22-tools lld-22
  clang-22 clang-format-22 clang-tidy-22
  libtomlplusplus-dev libopenblas-dev libgtest-dev zlib1g-dev
)

say() { echo "setup: $*" >&2; }

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    case "$installed" in
      *"|$package|"*) ;;
      *) printf '%s\n' "$package" ;;
    esac
  done
}

if ! command -v dpkg-query >/dev/null; then
  say "this is no Debian or relative of it; please provide: ${packages[*]}"
  exit 0
fi
# One query for all: dpkg-query takes a while to start, not to answer.
installed="|$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" \
  2>/dev/null | sed -n 's/^installed //p' | tr '\n' '|' || true)"
mapfile -t missing < <(missing_packages)
if [ "${#missing[@]}" -eq 0 ]; then
  exit 0
fi

say "missing: ${missing[*]}"
if [ "${1:-}" = --check ]; then
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    say "needs root or sudo to install them"
    exit 1
  fi
  as_root=(sudo)
fi

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
apt() {
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y "$@" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    return 1
  fi
}

say "updating the package lists"
apt update || say "the lists could not be updated; trying with those that are here"
unknown=()
for package in "${missing[@]}"; do
  if ! apt-cache show "$package" >/dev/null 2>&1; then
    unknown+=("$package")
  fi
done
if [ "${#unknown[@]}" -gt 0 ]; then
  say "the configured package sources do not have: ${unknown[*]}"
  case " ${unknown[*]} " in
    *-22*)
      say "parc needs LLVM and MLIR 22. Debian 12 has them in its security suite;"
      say "elsewhere enable a source that packages LLVM 22 and run this again."
      ;;
  esac
  exit 1
fi
say "installing them (a few minutes)"
apt install --no-install-recommends "${missing[@]}"
say "done"
