# Mixtures on the command line: shares, changes at a step, ends of parts, and the same plan on all ranks.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

parts="--mix math=$lengths/gsm8k_train.u32:3 --mix code=$lengths/code_alpaca.u32:1"
base="--lanes 4 --records-per-pack 8 --seed 1 --policy window --lookahead 4"

"$plan" $parts $base --steps 40 >before.txt 2>shares.txt
[ "$(wc -l <before.txt)" = 160 ] || fail "$(wc -l <before.txt) packs instead of 160"
grep -q '^mix: math 75.000 % of records' shares.txt || fail "shares: $(cat shares.txt)"

# Another rank plans the same, and a part that is added later moves nothing before.
"$plan" $parts $base --steps 40 --world 2 --rank 1 | sed 's/"rank":[0-9]*,//' >rank.txt
grep -E '"lane":[23],' before.txt | sed 's/"rank":[0-9]*,//' | cmp - rank.txt || fail "rank 1 plans something else"
more="--mix chat=$lengths/alpaca_eval_outputs.u32:0 --mix-from 20:chat=4,code=0"
"$plan" $parts $more $base --steps 40 >after.txt 2>shares.txt
head -n 80 before.txt >first.txt
head -n 80 after.txt | cmp - first.txt || fail "a change at step 20 moves what came before"
tail -n 80 after.txt >last.txt
if tail -n 80 before.txt | cmp -s - last.txt; then fail "a change at step 20 changes nothing"; fi
# 640 x 3/4 + 640 x 3/7 records of 1280.
grep -q '^mix: math 58.9' shares.txt || fail "shares: $(cat shares.txt)"

# A part of 1000 records that has 3 of 4: the run ends after 1333 records and less than a step.
"$plan" $parts $base --mix-end math=stop >stopped.txt 2>/dev/null
[ "$(tail -n 1 stopped.txt | cut -d, -f1)" = '{"step":40' ] || fail "ends with $(tail -n 1 stopped.txt)"

expect 2 "'cod', expected one of code, math" "$plan" $parts $base --mix-from 3:cod=1
expect 2 'expected NAME=PATH:WEIGHT' "$plan" --mix math $base
expect 2 'repeat, stop or drop' "$plan" $parts $base --mix-end math=never
expect 2 'rule' "$plan" $parts $base --epoch-end pad
expect 2 'at least one beside' "$plan" $base --mix-from 3:a=1
