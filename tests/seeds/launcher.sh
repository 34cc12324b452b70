#!/bin/bash
# Compiler launcher of the tutorial projects: names the checkout by its real path instead of the
# link in the scratch folder, so that all projects and the developer's build share cached objects.
arguments=()
for argument in "$@"; do
  arguments+=("${argument//$SEEDS_LINK/$SEEDS_ROOT}")
done
if command -v ccache > /dev/null; then
  exec ${SEEDS_LAUNCHER:-} ccache "${arguments[@]}"
fi
exec "${arguments[@]}"
