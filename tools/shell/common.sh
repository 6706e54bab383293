# shellcheck shell=bash
# Shared by the scripts in tools/; sourced from the root of the tree. Progress goes to stderr, results to stdout.

say() { printf '%s\n' "$*" >&2; }

die() {
  say "tools/${0##*/}: $*"
  exit 1
}

# build PRESET [TARGET...]: configures and builds into build/PRESET. The configure's own output shows only when it fails;
# what it leaves out for want of an optional package is always said.
build() {
  local preset=$1 log=build/$1/configure.log
  # The compiler cache knows a file again in another checkout.
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  shift
  mkdir -p "build/$preset"
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    say "configuring preset $preset failed"
    return 1
  fi
  sed -n 's/^-- optional part absent/optional part absent/p' "$log" >&2
  local targets=()
  (($# == 0)) || targets=(--target "$@")
  say "building preset $preset"
  cmake --build "build/$preset" "${targets[@]}" >&2 || {
    say "building preset $preset failed"
    return 1
  }
}
