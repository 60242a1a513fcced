# Files that are not what they should be: exit status 3 and a message that names the file.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

expect 3 'nowhere' "$inspect" nowhere.bin
expect 3 'nowhere' "$plan" --lengths nowhere.u32 --lanes 2 --records-per-pack 8
expect 3 'nowhere' "$sim" --lengths nowhere.u32

: >empty.u32
expect 3 'empty.u32' "$plan" --lengths empty.u32 --lanes 2 --records-per-pack 8
printf 'abcde' >odd.u32
expect 3 'odd.u32' "$plan" --lengths odd.u32 --lanes 2 --records-per-pack 8

"$make_corpus" "$LANEPACK_SOURCE/examples" good
expect 0 'good' "$inspect" good.bin

cp good.idx cut.idx
head -c 1000 good.bin >cut.bin
expect 3 'cut' "$inspect" cut.bin
expect 3 'cut' "$plan" --corpus cut.bin --lanes 2 --records-per-pack 8
cp good.bin magic.bin
{ printf 'TNTIDX\000\000' && tail -c +9 good.idx; } >magic.idx
expect 3 'fairseq' "$inspect" magic.bin

printf '{"input_ids": [1, 2, 3]}\n{"input_ids": [4, 5\n{"input_ids": [6]}\n' >bad.jsonl
expect 3 'bad.jsonl.*2|line 2' "$inspect" bad.jsonl

# A source without payload is nothing to make batches of, but can be planned.
expect 0 'digest' "$plan" --lengths "$lengths/math_5k.u32" --lanes 2 --records-per-pack 8 --steps 1
