# The simulator's rows: every key, the same figures twice, and packs that are better balanced.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

run="$sim --lengths $lengths/gsm8k_train.u32 --ranks 8 --steps 64 --seed 3 --policy sequential,window,calendar --json"
$run >first.json
$run >second.json
cmp first.json second.json || fail "two runs differ"
for key in corpus policy ranks lanes records_per_rank lookahead steps rank_cost_cv cv_reduction \
  within_step_cv within_step_cv_reduction step_efficiency time_efficiency bin_fill max_displacement_steps \
  peak_buffered_records_per_rank records_emitted infeasible_records unbalanceable_records \
  emitted_over_admitted_cost step_tokens_max_ratio token_weight_p99 packs_above_cap due_records \
  cost_over_expected digest relative_step_time; do
  [ "$(grep -o "\"$key\":" first.json | wc -l)" = 3 ] || fail "the key $key is not in all rows"
done

# value POLICY KEY: a number out of the row of a policy.
value() {
  tr -d ' \n' <first.json | tr '{' '\n' | grep "\"policy\":\"$1\"" | sed "s/.*\"$2\":\([^,}]*\).*/\1/"
}
[ "$(value sequential records_emitted)" = $((8 * 16 * 64)) ] || fail "records were lost"
[ "$(value window records_emitted)" = $((8 * 16 * 64)) ] || fail "records were lost"
[ "$(value calendar records_emitted)" = $((8 * 16 * 64)) ] || fail "records were lost"
awk "BEGIN { exit !($(value window cv_reduction) >= 0.7) }" || fail "window does not balance"
awk "BEGIN { exit !($(value window step_efficiency) > $(value sequential step_efficiency)) }" ||
  fail "window is not more efficient"
awk "BEGIN { exit !($(value calendar step_efficiency) > $(value window step_efficiency)) }" ||
  fail "calendar is not more efficient than window"

# Limits on a step spread heavy packs out; a declared histogram that is wrong shows.
limited="$sim --lengths $lengths/intercode_agent.u32 --ranks 64 --steps 256 --warmup 64 --seed 3 --json"
for ratio in 0 1.5; do
  $limited --policy window --max-step-tokens-ratio $ratio >first.json
  value window step_tokens_max_ratio
done >ratios.txt
awk 'NR == 1 { free = $1 } NR == 2 { exit !($1 < free && $1 < 1.8 && free > 2) }' ratios.txt ||
  fail "window does not keep the limit: $(cat ratios.txt)"
echo '{"lengths": [[40, 3], [60, 1]]}' >declared.json
$sim --lengths $lengths/gsm8k_train.u32 --ranks 8 --steps 64 --policy calendar --max-displacement 64 \
  --histogram declared.json --json >first.json
awk "BEGIN { exit !($(value calendar cost_over_expected) > 2) }" || fail "a wrong histogram does not show"
[ "$(value calendar max_displacement_steps)" -le 64 ] || fail "the displacement bound does not hold"
for bad in "--max-step-tokens-ratio 1" "--max-step-cost-ratio 0.5" "--max-displacement 3" \
  "--histogram missing.json"; do
  if $sim --lengths $lengths/gsm8k_train.u32 --ranks 8 --steps 8 --policy calendar $bad >/dev/null 2>&1; then
    fail "$bad was accepted"
  fi
done

# The table fits: the important columns, all of them with --wide, and the legend once.
table="$sim --lengths $lengths/gsm8k_train.u32 $lengths/math_5k.u32 --ranks 4 --steps 8"
COLUMNS=80 LC_ALL=C $table >table.txt
awk 'length($0) > 80 { exit 1 }' table.txt || fail "the table is wider than 80: $(cat table.txt)"
[ "$(grep -c '^policy ' table.txt)" = 2 ] || fail "not a table for each corpus: $(cat table.txt)"
[ "$(grep -c '^efficiency ' table.txt)" = 1 ] || fail "the legend is not there once"
grep -q 'rel\. time' table.txt && fail "relative times without a baseline"
grep -q 'bin fill' table.txt && fail "a narrow table has all columns"
COLUMNS=80 $table --wide >table.txt
grep -q 'bin fill' table.txt || fail "--wide does not print all columns"
# A misspelt policy: all that would do, baselines too.
expect 2 'calendar.*pooled_lpt.*or baselines' "$sim" --lengths "$lengths/gsm8k_train.u32" --policy foo
expect 0 'max-displacement UINT.*32 x lookahead' "$sim" --help
grep -qE 'REQUIRED' output.txt || fail "no required option: $(cat output.txt)"
grep -qE '=0 REQUIRED|=\[\]' output.txt && fail "defaults that are none: $(cat output.txt)"
exit 0
