#!/bin/sh
# Usage: other_compiler.sh COMPILER INCLUDE_DIR HEADERS FOLDER: compiles each header that the file HEADERS lists
# alone, without the bodies that are in lanepack::compiled. The standard headers come precompiled: whether a
# header includes those that it needs is what the build's own compiler has to say, with the same library.

set -eu
compiler=$1
include=$2
headers=$3
folder=$4
flags="-std=c++20 -Wall -Wextra -Wconversion -Wshadow -Werror -DLANEPACK_COMPILED=1 -I $include"

rm -rf "$folder"
mkdir -p "$folder"
xargs sed -nE 's/^(#include <[a-z_]+>)$/\1/p' <"$headers" | sort -u >"$folder/standard.hpp"
# shellcheck disable=SC2086 # a list of words
"$compiler" $flags -x c++-header "$folder/standard.hpp" -o "$folder/standard.hpp.gch"
# shellcheck disable=SC2086
xargs -P 2 -I {} "$compiler" $flags -fsyntax-only -include "$folder/standard.hpp" -include {} -x c++ /dev/null <"$headers"
