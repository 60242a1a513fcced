# The simulator's rows: every key, the same figures twice, and packs that are better balanced.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

run="$sim --lengths $lengths/gsm8k_train.u32 --ranks 8 --steps 64 --seed 3 --policy sequential,window --json"
$run >first.json
$run >second.json
cmp first.json second.json || fail "two runs differ"
for key in corpus policy ranks lanes records_per_rank lookahead steps rank_cost_cv cv_reduction \
  within_step_cv within_step_cv_reduction step_efficiency time_efficiency bin_fill max_displacement_steps \
  peak_buffered_records_per_rank records_emitted infeasible_records unbalanceable_records \
  emitted_over_admitted_cost step_tokens_max_ratio token_weight_p99 digest relative_step_time; do
  [ "$(grep -o "\"$key\":" first.json | wc -l)" = 2 ] || fail "the key $key is not in both rows"
done

# value POLICY KEY: a number out of the row of a policy.
value() {
  tr -d ' \n' <first.json | tr '{' '\n' | grep "\"policy\":\"$1\"" | sed "s/.*\"$2\":\([^,}]*\).*/\1/"
}
[ "$(value sequential records_emitted)" = $((8 * 16 * 64)) ] || fail "records were lost"
[ "$(value window records_emitted)" = $((8 * 16 * 64)) ] || fail "records were lost"
awk "BEGIN { exit !($(value window cv_reduction) >= 0.7) }" || fail "window does not balance"
awk "BEGIN { exit !($(value window step_efficiency) > $(value sequential step_efficiency)) }" ||
  fail "window is not more efficient"
