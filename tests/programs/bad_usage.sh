# Arguments that cannot work: exit status 2 and a message that names them.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

gsm8k=$lengths/gsm8k_train.u32
base="$plan --lengths $gsm8k --records-per-pack 8"

expect 2 'lanes' $plan --lengths "$gsm8k" --records-per-pack 8
expect 2 'oracle' $base --lanes 4 --policy oracle
expect 2 'loop' $base --lanes 4 --epoch-end loop
expect 2 'world|rank' $base --lanes 4 --world 0
expect 2 '4' $base --lanes 4 --world 4 --rank 4
# Lanes that the ranks cannot share: the message names world sizes that fit.
expect 2 '6' $base --lanes 6 --world 4 --rank 0
expect 0 'digest' $base --lanes 6 --world 4 --rank 0 --uneven --steps 1
expect 2 'records' $plan --lengths "$gsm8k" --lanes 4 --records-per-pack 0
expect 2 'capacity' $base --lanes 4 --capacity-tokens 0
expect 2 'oracle' "$sim" --lengths "$gsm8k" --policy oracle
expect 2 'PATH' "$inspect"
for program in inspect plan sim bench; do
  expect 0 'Example' "$LANEPACK_BIN/lanepack-$program" --help
  expect 0 '^[0-9]+\.[0-9]+\.[0-9]+$' "$LANEPACK_BIN/lanepack-$program" --version
done

# Every option that takes a number, found in the help: signs, other bases, octal zeros, fractions and
# what 64 bits do not hold are refused with what was typed and what may stand there.
for program in inspect plan sim bench; do
  options=$("$LANEPACK_BIN/lanepack-$program" --help |
    sed -nE 's/^ *(--[a-z-]+) (UINT|INT|N|ID)\b.*/\1/p')
  test -n "$options" || fail "lanepack-$program --help lists no numbers"
  for option in $options; do
    for wrong in -1 +5 010 0x10 0b11 1.5 1e3 ' 7' x 18446744073709551616 18446744073709551617; do
      expect 2 "^lanepack-$program: $option: found '.*', expected a decimal integer from [0-9]+ to [0-9]+\$" \
        "$LANEPACK_BIN/lanepack-$program" "$option=$wrong"
    done
  done
  for option in $("$LANEPACK_BIN/lanepack-$program" --help | sed -nE 's/^ *(--[a-z-]+) FLOAT\b.*/\1/p'); do
    for wrong in -1 +5 0x10 nan inf x 1e999; do
      expect 2 "^lanepack-$program: $option: found '.*', expected a decimal number" \
        "$LANEPACK_BIN/lanepack-$program" "$option=$wrong"
    done
  done
done
expect 2 "seed: found '-1', expected a decimal integer from 0 to 18446744073709551615" $base --lanes 4 --seed -1
expect 2 "rank: found '01', expected a decimal" $base --lanes 4 --world 4 --rank 01
expect 2 "lanes: found '4294967296', expected a decimal integer from 1 to 4294967295" $base --lanes 4294967296
expect 2 "skip-steps: found '-1', expected a decimal" $base --lanes 4 --skip-steps 0:-1
expect 2 'skip-steps: found 5:3' $base --lanes 4 --skip-steps 5:3

# Faults are told of the option that has them.
expect 2 'pack-size-change: found 3:4294967295, expected at most 524288 records' \
  $base --lanes 4 --pack-size-change 3:4294967295
expect 2 'pack-size-change: found 3:9, expected a step after 4' \
  $base --lanes 4 --pack-size-change 4:9 --pack-size-change 3:9
expect 2 'pack-size-change: found 0:9, expected a step after 0' $base --lanes 4 --pack-size-change 0:9
expect 2 "microbatch-overhead: found '1125899906842625'" "$sim" --lengths "$gsm8k" \
  --microbatch-overhead 1125899906842625
expect 0 'digest' $base --lanes 4 --steps 1 --max-step-tokens-ratio 1.000001 --policy sequential
expect 2 'ratio: found 1.0000001, expected at least 1.000001' $base --lanes 4 --max-step-tokens-ratio 1.0000001

# What no machine holds is refused before it is tried.
expect 2 'lanes: found 4000000000, which takes about .*, expected at most [0-9]+' $base --lanes 4000000000 --epoch-end continue
expect 2 'ranks: found 4294967295, which takes about' "$sim" --lengths "$gsm8k" --ranks 4294967295
expect 2 'sweep-ranks: found 4294967295, which takes about' "$sim" --lengths "$gsm8k" \
  --sweep --sweep-ranks 4294967295

# Options that would be without effect.
expect 2 'sweep' "$sim" --lengths "$gsm8k" --sweep --report page
expect 2 'sweep' "$sim" --lengths "$gsm8k" --sweep --sweep-ranks 3 --lanes 8
expect 2 'report' "$sim" --lengths "$gsm8k" --report-ranks 3
expect 2 'quick' "$LANEPACK_BIN/lanepack-bench" --quick --corpus-mib 4

# Results that nobody gets end a run, also one without an end.
if [ -c /dev/full ]; then
  for command in "$plan --lengths $gsm8k --records-per-pack 8 --lanes 4 --epoch-end continue" \
    "$sim --lengths $gsm8k --steps 2 --ranks 2" "$inspect $gsm8k --no-cache" \
    "$LANEPACK_BIN/lanepack-bench --list" "$plan --help" "$sim --version"; do
    status=0
    $command >/dev/full 2>err.txt || status=$?
    [ "$status" = 1 ] || fail "$command ended with $status on a full device"
    grep -q 'standard output cannot be written: No space' err.txt || fail "$command did not say why"
  done
fi
status=0
(trap '' PIPE && $base --lanes 4 --epoch-end continue 2>err.txt || echo $? >status.txt) | head -n 1 >first.txt
[ "$(cat status.txt)" = 1 ] || fail 'a plan that nobody reads did not end'
grep -q 'digest' first.txt || fail 'no plan came'
