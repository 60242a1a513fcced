#!/bin/sh
# One command from a fresh machine to a running lanepack; see `sh cmake/quickstart.sh --help`.

set -u

usage() {
  cat <<'USAGE'
Usage: sh cmake/quickstart.sh COMMAND [OPTION...]

Commands
  demo    build the programs and run the main job on a corpus made on the spot (a few minutes)
  test    build and run all tests, with sanitizers and two compilers (some 35 minutes on 2 cores)
  deps    only install what the two need

Options
  --fast        test: one build with g++ and no sanitizers
  --jobs N      compile and test N at a time (default: the number of cores)
  --build DIR   build below DIR (default: build/ in the repository)
  --no-install  never install anything; stop with a list of what is missing
  --help        this text

Works on Debian 12 or newer and Ubuntu 24.04 or newer. Missing packages are installed with apt-get,
through sudo if you are not root. Elsewhere, install what the list names and run it again.
USAGE
}

command=
fast=no
install=yes
jobs=$(nproc 2>/dev/null || echo 2)
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
build=$root/build
while [ $# -gt 0 ]; do
  case $1 in
    demo | test | deps) command=$1 ;;
    --fast) fast=yes ;;
    --no-install) install=no ;;
    --jobs | --build)
      if [ $# -lt 2 ]; then
        echo "quickstart: $1 needs a value" >&2
        exit 2
      fi
      if [ "$1" = --jobs ]; then jobs=$2; else build=$2; fi
      shift
      ;;
    --help | -h)
      usage
      exit 0
      ;;
    *)
      echo "quickstart: unknown argument '$1'" >&2
      usage >&2
      exit 2
      ;;
  esac
  shift
done
if [ -z "$command" ]; then
  usage >&2
  exit 2
fi
case $jobs in
  '' | *[!0-9]* | 0)
    echo "quickstart: --jobs is '$jobs', expected a number from 1" >&2
    exit 2
    ;;
esac
mkdir -p "$build" || exit 1
build=$(cd "$build" && pwd) || exit 1
cd "$root" || exit 1

say() {
  printf '\n==> %s\n' "$*"
}

die() {
  printf 'quickstart: %s\n' "$*" >&2
  exit 1
}

# --- What is needed -------------------------------------------------------------------------------------

missing=
need() { # need PACKAGE TEST...: PACKAGE is missing unless TEST succeeds
  package=$1
  shift
  "$@" >/dev/null 2>&1 || missing="$missing $package"
}

have() {
  command -v "$1"
}

have_file() {
  for file in "$@"; do
    [ -e "$file" ] && return 0
  done
  return 1
}

have_libcxx() {
  echo '#include <string>' | clang++ -stdlib=libc++ -fsyntax-only -x c++ -
}

have_clang_runtime() {
  echo 'int main() {}' | clang++ -fsanitize=address -x c++ - -o /dev/null
}

have_matplotlib() {
  python3 -c 'import matplotlib' || /usr/bin/python3 -c 'import matplotlib'
}

list_missing() {
  missing=
  need g++ have g++
  need cmake have cmake
  need ninja-build have ninja
  need nlohmann-json3-dev have_file /usr/include/nlohmann/json.hpp /usr/local/include/nlohmann/json.hpp
  need libfmt-dev have_file /usr/include/fmt/core.h /usr/local/include/fmt/core.h
  need libcli11-dev have_file /usr/include/CLI/CLI.hpp /usr/local/include/CLI/CLI.hpp
  if [ "$command" != demo ]; then
    need catch2 have_file /usr/include/catch2/catch.hpp /usr/include/catch2/catch_test_macros.hpp \
      /usr/local/include/catch2/catch_test_macros.hpp
    need libsentencepiece-dev have_file /usr/include/sentencepiece_processor.h \
      /usr/local/include/sentencepiece_processor.h
    need openmpi-bin have mpirun
    need python3-matplotlib have_matplotlib
    if [ "$fast" = no ]; then
      need clang have clang++
      need clang-format have clang-format
      need clang-tidy have clang-tidy
      need libc++-dev have_libcxx
      need libc++abi-dev have_libcxx
      need libclang-rt-dev have_clang_runtime
    fi
  fi
}

install_missing() {
  list_missing
  [ -z "$missing" ] && return 0
  as_root=
  if [ "$(id -u)" != 0 ]; then as_root=sudo; fi
  # shellcheck disable=SC2086 # both are lists of words
  if [ "$install" = yes ] && have apt-get >/dev/null && { [ -z "$as_root" ] || have sudo >/dev/null; }; then
    say "Installing:$missing"
    $as_root env DEBIAN_FRONTEND=noninteractive sh -c 'apt-get update -q && exec apt-get install -q -y --no-install-recommends "$@"' \
      sh $missing </dev/null
    list_missing
  fi
  # Without this one a component is left out, with its tests.
  if [ "$missing" = " libsentencepiece-dev" ]; then
    echo "quickstart: libsentencepiece-dev is missing: lanepack::sentencepiece is left out"
    missing=
  fi
  [ -z "$missing" ] && return 0
  {
    echo "quickstart: these packages are missing (named as in Debian and Ubuntu):"
    for package in $missing; do echo "  $package"; done
    echo "Install them and run this again, as root for example:"
    echo "  apt-get update && apt-get install --no-install-recommends$missing"
  } >&2
  exit 1
}

install_missing
[ "$command" = deps ] && exit 0

launcher=
if have ccache >/dev/null; then
  launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache
  # The same source in another folder is the same source.
  export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=true CCACHE_SLOPPINESS=pch_defines,time_macros
fi

configure() { # configure DIR OPTION...: -C file options come first, as CMake wants them
  dir=$1
  shift
  # shellcheck disable=SC2086 # empty or one word
  cmake -Wno-dev -S "$root" -B "$dir" -G Ninja $launcher "$@"
}

# --- demo -----------------------------------------------------------------------------------------------

show() {
  printf '\n$ %s\n' "$*"
  "$@" || die "'$*' failed"
}

demo() {
  dir=$build/demo
  say "Building the programs"
  configure "$dir" -DCMAKE_BUILD_TYPE=Release -DLANEPACK_TESTS=OFF -DLANEPACK_WERROR=OFF >"$build/demo.log" 2>&1 ||
    { cat "$build/demo.log" >&2; die "configuring failed"; }
  cmake --build "$dir" -j "$jobs" || die "the build failed"
  bin=$dir/bin
  corpus=$dir/corpus/lanepack

  say "A corpus out of lanepack's own sources: a record a paragraph, a token a byte, Megatron-LM files"
  mkdir -p "$dir/corpus"
  show "$bin/lanepack-make-corpus" "$root" "$corpus" --paragraphs
  say "What it holds"
  show "$bin/lanepack-inspect" "$corpus.bin"
  say "The plan of its first steps: every pack has the same number of records and nearly the same cost"
  show "$bin/lanepack-plan" --corpus "$corpus.bin" --world 2 --rank all --lanes 4 --records-per-pack 16 \
    --policy replicated --seed 1 --steps 2
  say "The loop of a trainer over it"
  show "$bin/example_twenty_lines" "$corpus.bin"
  say "A cluster of 64 ranks on record lengths of real corpora: work per rank, before and after"
  cd "$root/examples/lengths" || exit 1
  show "$bin/lanepack-sim" --policy sequential,window,replicated --steps 160 --lengths ./*.u32
  cd "$root" || exit 1
  say "Done. The programs are in $bin; each has --help."
}

# --- test -----------------------------------------------------------------------------------------------

passed=0
failed=0
skipped=0
broken=

count() { # adds what a log of ctest says to the sums
  line=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+' "$1" | tail -n 1)
  if [ -z "$line" ]; then return 1; fi
  run_failed=$(echo "$line" | sed -E 's/.*passed, ([0-9]+) tests?.*/\1/')
  run_total=$(echo "$line" | sed -E 's/.*out of ([0-9]+).*/\1/')
  run_skipped=$(grep -cE '\*\*\*Skipped' "$1")
  passed=$((passed + run_total - run_failed - run_skipped))
  failed=$((failed + run_failed))
  skipped=$((skipped + run_skipped))
  return 0
}

seconds() {
  date +%s
}

stage() { # stage NAME TITLE RUNNER OPTION...: configures, builds and tests one build
  name=$1
  title=$2
  runner=$3
  shift 3
  dir=$build/$name
  start=$(seconds)
  say "$title"
  if ! configure "$dir" "$@" >"$build/$name.configure.log" 2>&1; then
    cat "$build/$name.configure.log"
    broken="$broken $name(configure)"
    failed=$((failed + 1))
    return
  fi
  grep -E 'left out|Tests with' "$build/$name.configure.log"
  configured=$(seconds)
  if ! cmake --build "$dir" -j "$jobs" -- -k 0; then
    broken="$broken $name(build)"
    failed=$((failed + 1))
  fi
  built=$(seconds)
  # shellcheck disable=SC2086 # empty or a command with options
  $runner ctest --test-dir "$dir" -j "$jobs" --no-tests=error --output-on-failure 2>&1 | tee "$build/$name.ctest.log"
  if ! count "$build/$name.ctest.log"; then
    broken="$broken $name(ctest)"
    failed=$((failed + 1))
  fi
  end=$(seconds)
  echo "$name: configured in $((configured - start)) s, built in $((built - configured)) s, tested in $((end - built)) s"
}

run_tests() {
  begin=$(seconds)
  if [ "$fast" = yes ]; then
    stage fast "g++, Release" "" -DCMAKE_BUILD_TYPE=Release
  else
    stage asan "g++, Debug, AddressSanitizer and UndefinedBehaviorSanitizer" "" -C cmake/cache/asan.cmake
    # Where addresses are too random, older versions of ThreadSanitizer refuse to start.
    runner=
    if setarch "$(uname -m)" -R true 2>/dev/null; then runner="setarch $(uname -m) -R"; fi
    stage tsan "g++, ThreadSanitizer, the tests with threads" "$runner" -C cmake/cache/tsan.cmake
    # -O3 would take half as long again to build, and optimized tests twice as long as they run; golden
    # programs are built with it all the same.
    stage clang "clang++, optimized; golden digests of other builds, headers, install, style" "" \
      -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG" \
      -DLANEPACK_TESTS_COMPILED=ON -DLANEPACK_TEST_FLAGS=-O0 -DLANEPACK_STYLE_TESTS=ON
  fi
  echo
  echo "All of it took $((($(seconds) - begin) / 60)) min $((($(seconds) - begin) % 60)) s."
  if [ -n "$broken" ]; then echo "These stages broke:$broken"; fi
  if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
  else
    echo "$passed passed, $failed failed"
  fi
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

case $command in
  demo) demo ;;
  test) run_tests ;;
esac
