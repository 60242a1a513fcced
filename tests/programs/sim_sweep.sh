# lanepack-sim --sweep: the smallest lookahead that suffices, and chunks of long records.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

run="$sim --lengths $lengths/gsm8k_train.u32 --records-per-rank 8 --steps 48 --seed 2"

$run --policy window --sweep --sweep-ranks 2,8 --sweep-lookahead 1,4,16 --wanted-efficiency 0.9 \
  --json >sweep.json
grep -q '"wanted_efficiency": 0.9' sweep.json || fail "the wanted efficiency is not in the output"
[ "$(grep -c '"smallest_lookahead": ' sweep.json)" = 2 ] || fail "one line for each number of ranks"
[ "$(grep -c '"step_efficiency": ' sweep.json)" = 6 ] || fail "one figure for each lookahead"
# The smallest is the first from which on all figures are at least what is wanted.
tr -d ' \n' <sweep.json | tr '{' '\n' | awk -F'[:,}]' '
  /"smallest_lookahead"/ { for (i = 1; i <= NF; i++) if ($i ~ /smallest_lookahead/) said = $(i + 1) }
  /"lookahead"/ {
    for (i = 1; i <= NF; i++) {
      if ($i == "\"lookahead\"") k = $(i + 1)
      if ($i == "\"step_efficiency\"") e = $(i + 1)
    }
    if (k == 1) found = "null"
    if (e >= 0.9 && found == "null") found = k
    if (e < 0.9) found = "null"
    if (k == 16 && found != said) exit 1
  }' || fail "the smallest lookahead is not that of the figures"
$run --policy window --sweep --sweep-ranks 2 --sweep-lookahead 1,4 >sweep.txt 2>err.txt
grep -q '^2 simulations$' err.txt || fail "does not say how much there is to do: $(cat err.txt)"
grep -q 'K=4' sweep.txt || fail "no column for a lookahead"

for wrong in "--sweep --sweep-lookahead 4,1" "--sweep --sweep-ranks 0" \
  "--sweep --wanted-efficiency 1.5" "--sweep-ranks 4" "--sweep --ranks 4" "--sweep --lookahead 4"; do
  # shellcheck disable=SC2086 # a list of words
  $run $wrong >out.txt 2>err.txt && fail "accepted $wrong"
  [ -s err.txt ] || fail "said nothing about $wrong"
done

# Records above the capacity: cut into chunks, no record or token is lost.
$run --ranks 4 --policy sequential --capacity-tokens 100 --infeasible chunk --json >chunk.json
$run --ranks 4 --policy sequential --capacity-tokens 32768 --infeasible fail --json >whole.json
for key in step_efficiency records_emitted digest; do
  [ "$(grep "\"$key\"" chunk.json)" = "$(grep "\"$key\"" whole.json)" ] ||
    fail "$key differs with chunks"
done
grep -q '"infeasible_records": 0' chunk.json && fail "chunked records are not counted"
$run --policy pooled_lpt --capacity-tokens 100 --infeasible chunk >out.txt 2>err.txt &&
  fail "a baseline accepted chunks"
grep -q 'infeasible chunk' err.txt || fail "the message does not name the option"
exit 0
