#!/bin/sh
# The commits since the last tag, a line each.
set -eu
git log --no-merges --format='%h %s' "$(git describe --tags --abbrev=0)..HEAD"
