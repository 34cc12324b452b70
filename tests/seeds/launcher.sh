#!/bin/bash
# Compiler launcher of the tutorial projects. It names the checkout by its real path instead of the
# link in the scratch folder, and lets the cache see paths below it as relative, so that what one
# project compiled is there for the others, and for the next checkout. SEEDS_LAUNCHER runs in front.
arguments=("${@//$SEEDS_LINK/$SEEDS_ROOT}")
if command -v ccache > /dev/null; then
  CCACHE_BASEDIR=$SEEDS_ROOT exec ${SEEDS_LAUNCHER:-} ccache "${arguments[@]}"
fi
exec ${SEEDS_LAUNCHER:-} "${arguments[@]}"
