# What lanepack-convert makes of MosaicML MDS datasets.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

cp -r "$LANEPACK_SOURCE/tests/golden/mds" golden

# values_of FILE BYTES: the little-endian numbers of a file, in one line.
values_of() {
  od -An -v -tu"$2" "$1" | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'
}

# le32 NUMBER...: 4 bytes each, for printf '%b'.
le32() {
  for number in "$@"; do
    printf '\\0%o\\0%o\\0%o\\0%o' $((number & 255)) $((number >> 8 & 255)) $((number >> 16 & 255)) $((number >> 24))
  done
}

# dataset FOLDER COLUMN ENCODING VALUE...: a shard of one column, a sample a value.
dataset() {
  folder=$1
  column=$2
  encoding=$3
  shift 3
  mkdir -p "$folder"
  at=$((4 + 4 * ($# + 1)))
  head=$(le32 $# $at)
  samples=$#
  for value in "$@"; do
    at=$((at + 4 + $(printf '%s' "$value" | wc -c)))
    head=$head$(le32 $at)
  done
  {
    printf '%b' "$head"
    for value in "$@"; do
      printf '%b%s' "$(le32 "$(printf '%s' "$value" | wc -c)")" "$value"
    done
  } >"$folder/shard.00000.mds"
  printf '{"version": 2, "shards": [{"format": "mds", "version": 2, "compression": null, "hashes": [], "size_limit": 67108864, "zip_data": null, "raw_data": {"basename": "shard.00000.mds", "bytes": %d, "hashes": {}}, "samples": %d, "column_names": ["%s"], "column_encodings": ["%s"], "column_sizes": [null]}]}' \
    "$at" "$samples" "$column" "$encoding" >"$folder/index.json"
}

# Columns of text and of tokens, which is which said where there are both.
expect 3 'index.json: found the columns any .*, expected one of text .text., tokens or input_ids, and messages' \
  "$convert" golden -o out --tokenizer bytes
expect 0 'documents +5' "$convert" golden -o out --tokenizer bytes --content text
[ "$(values_of out.bin 2 | cut -d' ' -f1-12)" = '115 97 109 112 108 101 32 48 58 32 195 169' ] || fail "$(values_of out.bin 2)"
expect 0 'tokens +20 of type i32, 9 of them' "$convert" golden/index.json -o tokens --content tokens --loss-mask-column mask
[ "$(values_of tokens.bin 4)" = '0 3 1 4 7 2 5 8 11 3 6 9 12 15 4 7 10 13 16 19' ] || fail "$(values_of tokens.bin 4)"
[ "$(values_of tokens_loss_mask.bin 1)" = '0 1 1 0 1 0 1 0 1 1 0 1 0 1 0 1 0 1 0 1' ] || fail "$(values_of tokens_loss_mask.bin 1)"
expect 0 'loss tokens +9 ' "$inspect" tokens
expect 0 'documents +10' "$convert" golden golden/index.json -o out --content tokens --part-bytes 1 --threads 2
[ "$(values_of out.bin 4)" = "$(values_of tokens.bin 4) $(values_of tokens.bin 4)" ] || fail "$(values_of out.bin 4)"
[ "$(ls golden)" = "$(ls "$LANEPACK_SOURCE/tests/golden/mds")" ] || fail "files were left in the dataset: $(ls golden)"
expect 3 "column 'pickle': found a Python pickle" "$convert" golden -o bad --content tokens --token-key pickle
expect 3 "found no such column|expected one called 'nothing'" "$convert" golden -o bad --content tokens --token-key nothing
expect 3 "column 'nothing': found no such column" \
  "$convert" golden -o bad --content text --text-field nothing --tokenizer bytes
expect 2 'loss-mask-column: found samples that are no tokens' \
  "$convert" golden -o bad --content text --tokenizer bytes --loss-mask-column mask
expect 2 'bytes-type' "$convert" golden -o bad --content tokens --bytes-type f32
echo text >text.txt
expect 2 'loss-mask-column: found input that is no MDS dataset' \
  "$convert" text.txt -o bad --tokenizer bytes --loss-mask-column mask
expect 2 "INPUT: found 'text.txt' beside 'golden', expected" "$convert" golden text.txt -o bad --tokenizer bytes

# Bytes have no type of their own.
dataset bytes tokens bytes abcd efghijkl
expect 0 'tokens +3 ' "$convert" bytes -o out --bytes-type i32
[ "$(values_of out.bin 4)" = '1684234849 1751606885 1818978921' ] || fail "$(values_of out.bin 4)"
expect 0 'tokens +12 ' "$convert" bytes -o out --bytes-type u8

# Conversations, as JSON or as a text of it.
chat='[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]'
bad='[{"role": "bot", "content": ""}]'
dataset chat messages json "$chat" "$bad" "$chat"
dataset texts messages str "$chat" "$chat"
expect 3 'record 1: messages.0..role: found "bot"' "$convert" chat -o out --tokenizer bytes --template plain
expect 0 'record 1: messages.0..role: found "bot".*left out' \
  "$convert" chat -o out --tokenizer bytes --template plain --bad-lines skip --restart
expect 0 'documents +2' "$convert" texts -o two --tokenizer bytes --template plain
cmp out.bin two.bin || fail "other tokens"
cmp out_loss_mask.bin two_loss_mask.bin || fail "another mask"

# A shard that is cut short.
head -c 30 chat/shard.00000.mds >short && mv short chat/shard.00000.mds
expect 3 'chat/shard.00000.mds' "$convert" chat -o bad --tokenizer bytes --template plain
[ -z "$(ls bad.bin bad.idx 2>/dev/null)" ] || fail "left behind: $(ls bad*)"
