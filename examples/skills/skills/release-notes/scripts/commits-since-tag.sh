#!/bin/sh
# Prints the commits since the last tag, one per line.
set -eu
git log --no-merges --format='%h %s' "$(git describe --tags --abbrev=0)..HEAD"
