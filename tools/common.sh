# SPDX-License-Identifier: Apache-2.0
#
# What tools/setup, tools/demo and tools/test share. Sourced, not run.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

# Names the part of the work that begins, with the time since the script started.
step() { printf '==> [%4ds] %s\n' "$SECONDS" "$*"; }

# Ends the script: what went wrong, then what to do about it.
die() {
  printf '%s: error: %s\n' "$(basename "$0")" "$1" >&2
  if [ $# -gt 1 ]; then printf '%s: hint: %s\n' "$(basename "$0")" "$2" >&2; fi
  exit 1
}

# Runs "$@" with its output in $root/build/logs/NAME.log; on failure shows the end of it and stops.
logged() {
  local name=$1 hint=$2
  shift 2
  local log="$root/build/logs/$name.log"
  mkdir -p "${log%/*}"
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    die "$name failed (the whole output is in $log)" "$hint"
  fi
}

# Compile jobs: all cores, but no more than one for each 1.5 GB of memory.
jobs_for_build() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ { print int($2 / 1500000) + 1 }' /proc/meminfo)
  echo $((cores < memory ? cores : memory))
}

# Configure options that every build of the scripts gets.
launcher_options() {
  if command -v ccache >/dev/null; then
    echo "-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
  fi
}
