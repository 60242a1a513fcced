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
