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

# Paths that are no regular files are refused at once.
mkfifo fifo
for command in "$inspect fifo" "$plan --lengths fifo --lanes 2 --records-per-pack 8" \
  "$plan --corpus fifo --lanes 2 --records-per-pack 8" "$sim --lengths fifo" \
  "$sim --lengths $lengths/math_5k.u32 --model fifo" \
  "$plan --lengths $lengths/math_5k.u32 --lanes 2 --records-per-pack 8 --histogram fifo"; do
  expect 3 'fifo: cannot read the file: found a FIFO, expected a regular file' timeout 20 $command
done
expect 3 '/dev/zero: cannot read the file: found a device' "$inspect" /dev/zero --format u32
if [ -r /proc/cpuinfo ]; then
  expect 3 'cpuinfo, byte 0: found content in a file of 0 bytes' "$inspect" /proc/cpuinfo --format jsonl
fi

# Files larger than the memory, which take no room on the device.
printf '{"tokens": [1, 2]}\n' >endless.jsonl
truncate -s 1T endless.jsonl
expect 3 'endless.jsonl, line 2, byte 19: found byte 0x00, expected an object' \
  timeout 60 "$plan" --corpus endless.jsonl --lanes 2 --records-per-pack 8
{ printf '{"tokens": [1' && head -c 300000 /dev/zero | tr '\0' '1' && printf ']}\n'; } >long.jsonl
expect 3 'long.jsonl, line 1, byte 0: found a line of more than 100000 bytes, expected at most' \
  "$inspect" long.jsonl --max-line-bytes 100000
cp "$lengths/math_5k.u32" grown.u32
expect 0 'written to grown.u32.*lanepack-summary' "$inspect" grown.u32
truncate -s 1T grown.u32.*.lanepack-summary
expect 0 'digest' timeout 60 "$plan" --lengths grown.u32 --lanes 2 --records-per-pack 8 --steps 1

# Names need not be UTF-8.
latin=$(printf 'caf\351.u32')
cp "$lengths/math_5k.u32" "$latin"
expect 0 'caf' "$sim" --lengths "$latin" --ranks 2 --steps 2 --json
expect 0 'caf' "$sim" --lengths "$latin" --sweep --sweep-ranks 2 --sweep-lookahead 1 --steps 2 --json

# Small JSON files: what contradicts itself is refused with the file's name.
printf '{"lengths": [[0, 5]]}' >empty.json
expect 3 'empty.json' "$plan" --lengths grown.u32 --lanes 2 --records-per-pack 8 --policy calendar --histogram empty.json
printf '{"lengths": [[5, 5]], "lengths": [[6, 5]]}' >twice.json
expect 3 'twice.json: key "lengths" is there twice' "$plan" --lengths grown.u32 --lanes 2 --records-per-pack 8 --histogram twice.json
printf '{"linear": 1, "linear": 2}' >twice.json
expect 3 'twice.json: key "linear" is there twice' "$sim" --lengths grown.u32 --model twice.json
printf '{"input_ids": [1], "tokens": [2]}\n' >both.jsonl
expect 3 'both.jsonl, line 1, byte 29: found both' "$inspect" both.jsonl

# A link to itself is passed over.
mkdir -p linked
printf 'text\n' >linked/a.txt
ln -s loop linked/loop
expect 0 ': 1 records, 5 tokens' "$make_corpus" linked made

# Examples say what is wrong, too.
for example in twenty_lines ranks_threads; do
  if [ -x "$LANEPACK_BIN/example_$example" ]; then
    expect 1 "usage: example_$example CORPUS" "$LANEPACK_BIN/example_$example"
    expect 1 'nowhere.bin' "$LANEPACK_BIN/example_$example" nowhere.bin
  fi
done
