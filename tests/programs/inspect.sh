# What lanepack-inspect says of small corpora, good and bad, and that it keeps what it has found out.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

# 4 records of 3, 1, 0 and 10 tokens; 2 + 0 + 0 + 4 of them targets.
cat >small.jsonl <<'END'
{"input_ids": [1, 2, 3]}
{"tokens": [70000], "text": "one"}

{"input_ids": []}
{"input_ids": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "loss_mask": [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]}
END
expect 0 'written to small.jsonl.*lanepack-summary' "$inspect" small.jsonl --capacity-tokens 2 --tokens
for line in 'format +JSON Lines' 'records +4$' 'empty +1 records' 'tokens +14$' \
  'loss tokens +6 ' 'longer +2 records \(50.0%\) with 13 tokens' 'beyond +9 tokens' \
  'token ids +1 to 70000' '^ *longest +10$' '^ *10 .* 1 \(25.0%, 71.4% of tokens\)'; do
  grep -qE "$line" output.txt || fail "no line with '$line' in $(cat output.txt)"
done
[ -f small.jsonl.lanepack-index ] || fail "no index of the lines was written"
expect 0 'found in small.jsonl.*lanepack-summary' "$inspect" small.jsonl
expect 0 'written to small.jsonl.*lanepack-summary' "$inspect" small.jsonl --refresh

"$inspect" small.jsonl --capacity-tokens 2 --vocabulary 70001 --json >report.json
for key in '"format": "JSON Lines"' '"records": 4' '"loss_tokens": 6' '"0.5": 1' '"1": 10' \
  '"tokens_of_records_above": 13' '"lowest": 1' '"highest": 70000' '"outside_vocabulary": 0' \
  '"problem_count": 0' '"summary_was_saved": true'; do
  grep -qF "$key" report.json || fail "no $key in $(cat report.json)"
done

expect 3 'record 1: token 0: found id 70000, expected below the vocabulary of 70000' \
  "$inspect" small.jsonl --vocabulary 70000
expect 0 'loss tokens +11 ' "$inspect" small.jsonl --targets none

# Every bad line is listed, up to the limit.
{
  printf '{"tokens": [1]}\n{"tokens": [1,]}\n{"tokens": [-1]}\n\n'
  printf '{"input_ids": [5], "labels": [6]}\nno json\n'
} >bad.jsonl
expect 3 'lanepack-inspect: bad.jsonl: 4 problems' "$inspect" bad.jsonl
[ "$(grep -c 'line 2, byte 30' output.txt)" = 1 ] || fail "a problem is not said once: $(cat output.txt)"
for line in 'line 3, .*tokens\[0\]: found -1' 'line 5, .*labels\[0\]: found 6, expected -100' \
  'line 6, .*malformed JSON'; do
  grep -qE "$line" output.txt || fail "no line with '$line' in $(cat output.txt)"
done
expect 3 'and 2 more' "$inspect" bad.jsonl --max-problems 2
"$inspect" bad.jsonl --json >report.json 2>errors.txt && fail "bad data is no success"
grep -qF '"line": 5' report.json || fail "no line number in $(cat report.json)"
grep -qF '"summary": null' report.json || fail "a summary of bad data in $(cat report.json)"

# A bad corpus does not hide a good one.
expect 3 'records +4$' "$inspect" bad.jsonl small.jsonl

# nanoGPT: u16 without a header; 50256 ends a document.
printf '\001\000\002\000\120\304\003\000\120\304' >nano.bin
expect 3 'token_file_options::type.*--dtype u16' "$inspect" nano.bin
[ "$(wc -l <output.txt)" = 1 ] || fail "said more than once: $(cat output.txt)"
expect 0 'records +2$' "$inspect" nano.bin --dtype u16
expect 0 'records +2$' "$inspect" nano.bin --dtype uint16 --eot 2 --eot-place first
expect 2 'dtype.*float32' "$inspect" nano.bin --dtype float32

# Several wrong entries of one index, each named: the second and fourth pointer.
"$make_corpus" "$LANEPACK_SOURCE/examples" good --paragraphs
expect 0 'Megatron-LM' "$inspect" good
cp good.bin twisted.bin
sequences=$(sed -n 's/.*holds.*: \([0-9]*\) sequences.*/\1/p' output.txt)
cp good.idx twisted.idx
for entry in 1 3; do
  printf '\377' | dd of=twisted.idx bs=1 seek=$((34 + 4 * sequences + 8 * entry + 7)) conv=notrunc 2>dd.txt
done
expect 3 "byte $((34 + 4 * sequences + 8))" "$inspect" twisted
grep -qE "byte $((34 + 4 * sequences + 24))" output.txt || fail "one fault hides another: $(cat output.txt)"

# Without a cache nothing is left behind.
mkdir clean
cp small.jsonl clean
expect 0 'not saved' "$inspect" clean/small.jsonl --no-cache
[ "$(ls clean | wc -l)" = 1 ] || fail "left behind: $(ls clean)"
