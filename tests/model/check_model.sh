#!/bin/sh
# Verifies one model with spin. Usage: check_model.sh SPIN CC MODEL EXPECT [-Dname=value ...]
# EXPECT: holds | deadlock | assertion. A mutant that is expected to fail must fail in the named way.
# Exit status: 0 as expected, 1 not, 2 the check could not be made.
set -u
spin=$1 cc=$2 model=$3 expect=$4
shift 4
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

"$spin" -a "$@" "$model" >spin.log 2>&1 || { cat spin.log; exit 2; }
# 2 GB is the limit of a check; the deepest path seen is below 600 steps, a cut search is not a proof
"$cc" -O2 -w -DSAFETY -DMEMLIM=2000 -o pan pan.c || exit 2
./pan -m100000 -w24 >pan.log 2>&1

case $(cat pan.log) in
  *"invalid end state (at depth"*) found=deadlock ;;
  *"assertion violated ("*) found=assertion ;;
  *"max search depth too small"* | *"reached -DMEMLIM"* | *"Search not completed"*) found=incomplete ;;
  *"errors: 0"*) found=holds ;;
  *) found=nothing ;;
esac
echo "$(basename "$model") $*: $found (expected: $expect)"
grep -E 'errors:|states, stored|actual memory usage|elapsed time' pan.log
if [ "$found" != "$expect" ]; then
  cat pan.log
  if [ -f ./*.trail ]; then
    cp "$model" . && "$spin" -t -p -g -k ./*.trail "$@" "$(basename "$model")" | tail -n 300
  fi
  [ "$found" != nothing ] || exit 2
  exit 1
fi
