# Baselines of the simulator: each at its best capacity, compared with each other, bounded.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

run="$sim --lengths $lengths/t0_p3_50k.u32 --ranks 8 --steps 32 --seed 3 --microbatch-overhead-tokens 500"
names="pooled_mffd pooled_mffd_padded pooled_ffd pooled_ffd_balanced pooled_lpt pooled_kk dp_balanced length_grouped"

longest=$(od -An -v -tu4 -w4 "$lengths/t0_p3_50k.u32" | sort -n | tail -n 1)

# value POLICY KEY FILE: a number out of the row of a policy.
value() {
  tr -d ' \n' <"$3" | tr '{' '\n' | grep "\"policy\":\"$1\"" | sed "s/.*\"$2\":\([^,}]*\).*/\1/"
}

# holds TEXT CONDITION
holds() {
  awk "BEGIN { exit !($2) }" || fail "$1: $2"
}

for sync in step microbatch; do
  $run --sync $sync --policy window,baselines --json >$sync.json
  $run --sync $sync --policy window,baselines --json >again.json
  cmp $sync.json again.json || fail "two runs differ"
  best=0
  for name in $names; do
    capacity=$(value "$name" tuned_capacity_tokens $sync.json)
    holds "$name's capacity is up to the user's and holds every record" \
      "$capacity >= $longest && $capacity <= 32768"
    [ "$(value "$name" records_emitted $sync.json)" = $((8 * 16 * 32)) ] || fail "$name lost records"
    [ "$(value "$name" lane_total_bound $sync.json)" = null ] || fail "$name is not bound to lanes"
    relative=$(value "$name" relative_step_time $sync.json)
    holds "a step time of $name" "$relative > 0.3"
    [ "$relative" != 1.0 ] || best=$((best + 1))
  done
  [ $best = 1 ] || fail "$best coordinated baselines are the fastest"
  [ "$(value window tuned_capacity_tokens $sync.json)" = null ] || fail "window is no baseline"
  for name in window $names; do
    efficiency=$(value "$name" step_efficiency $sync.json)
    step=$(value "$name" step_bound $sync.json)
    window=$(value "$name" window_bound $sync.json)
    holds "bounds of $name" "$efficiency <= $step + 1e-9 && $step <= $window + 1e-9 && $window <= 1"
  done
  holds "window is bounded by its lanes" \
    "$(value window step_efficiency $sync.json) <= $(value window lane_total_bound $sync.json)"
done
# A backend that pads pays for it.
holds "padding costs time" "$(value pooled_mffd_padded mean_step_time step.json) >= $(value pooled_mffd mean_step_time step.json)"

# Alone there is nothing to compare with.
$run --policy window --json >alone.json
[ "$(value window relative_step_time alone.json)" = null ] || fail "a relative time without a baseline"
# The overhead of 500 tokens is the cost of a record of 500: 24576 x 500 + 500^2.
$sim --lengths $lengths/t0_p3_50k.u32 --ranks 8 --steps 32 --seed 3 --microbatch-overhead 12538000 \
  --policy window --json >units.json
cmp alone.json units.json || fail "500 tokens do not cost 12538000"
# Ranks that meet in every micro-batch cut level ones, unless told otherwise.
$run --sync microbatch --policy window --json >default.json
$run --sync microbatch --policy window --micro-batching level --json >level.json
cmp default.json level.json || fail "level is not the rule of --sync microbatch"
$run --sync microbatch --policy window --micro-batches 3 --json >three.json
holds "three micro-batches a step" "$(value window micro_batches_per_step three.json) == 3"

COLUMNS=200 $run --policy window,pooled_mffd >table.txt
for text in 'possible' 'rel\. time' 'fastest coordinated' 'pooled_mffd [0-9]+$'; do
  grep -qE "$text" table.txt || fail "the table does not say '$text'"
done
# What is no coordinated baseline is marked, and the mark explained.
$run --policy window,pooled_lpt,length_grouped >table.txt
grep -q '^length_grouped \*' table.txt || fail "length_grouped has no mark: $(cat table.txt)"
grep -q '^\* does not count as coordinated' table.txt || fail "the mark is not explained"
# Records above the capacity can be cut into chunks, and baselines do not cut.
chunks="$run --capacity-tokens 2048 --infeasible chunk"
$chunks --policy window --sync microbatch --json >chunks.json
[ "$(value window records_emitted chunks.json)" = $((8 * 16 * 32)) ] || fail "chunks lost records"
expect 2 'no baseline with --infeasible chunk' $chunks --policy pooled_mffd
expect 2 'excludes' $run --microbatch-overhead 3
expect 2 'micro_batches' $run --micro-batches 0
expect 2 'micro_batch_rule' $run --micro-batching loose
expect 2 'sync' $run --sync never
expect 0 'baselines --sync microbatch' "$sim" --help
