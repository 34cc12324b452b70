#!/bin/bash
# Compiler launcher of the tutorial projects. It names the checkout by its real path instead of the
# link in the scratch folder and adds the dev preset's one extra flag, so that these builds take
# their objects from the compiler cache that ./dev build filled. SEEDS_LAUNCHER runs in front.
arguments=()
for argument in "$@"; do
  arguments+=("${argument//$SEEDS_LINK/$SEEDS_ROOT}")
  [ "$argument" = -Wno-psabi ] && arguments+=(-Werror)
done
if command -v ccache > /dev/null; then
  exec ${SEEDS_LAUNCHER:-} ccache "${arguments[@]}"
fi
exec ${SEEDS_LAUNCHER:-} "${arguments[@]}"
