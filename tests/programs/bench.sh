# Every benchmark runs, checks what it computed, and says where it ran.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

bench=$LANEPACK_BIN/lanepack-bench

expect 0 'Example:' "$bench" --help
expect 0 '^packer/window/K=16/b=16/lengths=dialogues$' "$bench" --list
expect 0 '^tokenizer/file=llama3.json$' "$bench" --list
expect 2 'clock' "$bench" --clock sundial
if "$bench" --quick --filter sampler 2>&1 | grep -q 'built without NDEBUG'; then
  echo "built without NDEBUG: nothing is measured"
  exit 77
fi
expect 2 'filter: found' "$bench" --filter no-such-benchmark
expect 0 'loader/lengths=8000' "$bench" --quick --folder .
# With the package or without it.
expect 0 'megatron-core' "$bench" --quick --references --filter sampler/mixture/parts=4/stride=1
[ -z "$(find . -name 'lanepack-bench-*')" ] || fail "corpora were left behind"

"$bench" --quick --json --filter sampler/permutation,-10^9 >found.json
for key in context date compiler flags cpu_model num_cpus library_build_type benchmarks name run_name run_type \
  repetitions repetition_index threads iterations real_time cpu_time time_unit aggregate_name \
  items_per_second speed_against_philox4x64; do
  grep -q "\"$key\":" found.json || fail "the key $key is missing"
done
if grep -q 'n=10^9' found.json; then fail "a name that was left out is there"; fi
