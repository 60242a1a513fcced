# What lanepack-convert makes of text and JSON Lines, that nothing but the input and the options decides
# it, and that it goes on where it was broken off.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

# text_of FILE: tokens of type u16 that are bytes, as text.
text_of() {
  tr -d '\000' <"$1"
}

# values_of FILE BYTES: the little-endian numbers of a file, in one line.
values_of() {
  od -An -v -tu"$2" "$1" | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'
}

same() { # same PREFIX PREFIX: all files of two corpora
  for ending in .bin .idx _loss_mask.bin _loss_mask.idx _loss_tokens.u32; do
    if [ -e "$1$ending" ] || [ -e "$2$ending" ]; then
      cmp "$1$ending" "$2$ending" || fail "$1$ending differs from $2$ending"
    fi
  done
}

# Three shapes in one file, a token a byte.
cat >chat.jsonl <<'END'
{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]}

{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}
{"instruction": "Do", "input": "x", "output": "ok"}
END
expect 0 'wrote +chat.bin, .idx and chat_loss_mask.bin' "$convert" chat.jsonl -o chat --tokenizer bytes --template plain
[ ! -e chat.partial ] || fail "chat.partial was left behind"
printf 'User: Hi\nAssistant: Yes\nUser: a\nAssistant: b\nUser: Do\nx\nAssistant: ok\n' >expected.txt
text_of chat.bin | cmp - expected.txt || fail "other tokens: $(text_of chat.bin)"
# 9 + 10 bytes of context, then " Yes\n"; 8 + 10 and " b\n"; 11 + 10 and " ok\n".
zeros() { yes 0 | head -n "$1" | tr '\n' ' '; }
[ "$(values_of chat_loss_mask.bin 1)" = "$(zeros 19)1 1 1 1 1 $(zeros 18)1 1 1 $(zeros 21)1 1 1 1" ] ||
  fail "another mask: $(values_of chat_loss_mask.bin 1)"
[ "$(values_of chat_loss_tokens.u32 4)" = '5 3 4' ] || fail "loss tokens $(values_of chat_loss_tokens.u32 4)"
expect 0 'loss tokens +12 ' "$inspect" chat --tokens
expect 0 'loss tokens +67 ' "$inspect" chat --loss-mask none
expect 0 'digest' "$plan" --corpus chat --lanes 1 --records-per-pack 2
expect 0 '"loss_tokens": 67' "$convert" chat.jsonl -o all --tokenizer bytes --template plain --loss all --json
expect 0 '"loss_mask": false' "$convert" chat.jsonl -o chat --tokenizer bytes --template plain --loss-mask no --json
[ ! -e chat_loss_mask.bin ] || fail "the mask of an older corpus is still there"

# A tokenizer of the Hugging Face kind has the tokens of a template.
qwen=$LANEPACK_SOURCE/tests/golden/tokenizers/qwen2.json
expect 0 '"documents": 3' "$convert" chat.jsonl -o qwen --tokenizer "$qwen" --template chatml --json
"$convert" chat.jsonl -o qwen-text --tokenizer "$qwen" --template chatml --append-eot --quiet >report.txt
[ "$(wc -c <qwen-text.bin)" = $(($(wc -c <qwen.bin) + 6)) ] || fail "not one token more a conversation"
expect 2 "chat template chatml: found a tokenizer without the token '<\|im_start\|>'" \
  "$convert" chat.jsonl -o bad --tokenizer bytes --template chatml
expect 2 'template: found nothing for a chat' "$convert" chat.jsonl -o bad --tokenizer bytes
expect 2 'tokenizer: found nothing' "$convert" chat.jsonl -o bad --template plain
[ -z "$(ls -d bad* 2>/dev/null)" ] || fail "left behind: $(ls -d bad*)"

# Texts of lines, files and paragraphs; what is too short or too long.
printf '{"id": 1, "text": "one \\u00e9"}\n{"text": ""}\r\n{"text": "three"}\n' >text.jsonl
expect 0 'too short +1' "$convert" text.jsonl -o text --tokenizer bytes --append-eot --min-tokens 2
[ "$(values_of text.bin 2)" = '111 110 101 32 195 169 256 116 104 114 101 101 256' ] || fail "$(values_of text.bin 2)"
expect 0 'cut +2' "$convert" text.jsonl -o text --tokenizer bytes --max-tokens 4
[ "$(text_of text.bin)" = 'one thre' ] || fail "not truncated: $(text_of text.bin)"
expect 0 'documents +4' "$convert" text.jsonl -o text --tokenizer bytes --max-tokens 4 --long split
expect 0 'too long +1' "$convert" text.jsonl -o text --tokenizer bytes --max-tokens 5 --long skip
mkdir -p folder/b
printf 'one\ntwo\n\nthree\n' >folder/b/x.txt
printf 'zero' >folder/a.md
expect 0 'documents +2' "$convert" folder -o text --tokenizer bytes
[ "$(text_of text.bin)" = "zero$(cat folder/b/x.txt)" ] || fail "other text: $(text_of text.bin)"
expect 0 'documents +3' "$convert" folder -o text --tokenizer bytes --unit paragraph
expect 0 'documents +3' "$convert" folder -o text --tokenizer bytes --unit line --ending .txt

printf '{"messages": [{"role": "user", "content": "a"}], "tools": [{"name": "f"}]}\n' >tools.jsonl
expect 3 'tools.jsonl, line 1, byte 58: tools: found something' "$convert" tools.jsonl -o bad --tokenizer bytes \
  --template plain --content chat
expect 0 'documents +1' "$convert" tools.jsonl -o tools --tokenizer bytes --template plain --chat-extras ignore

# SentencePiece, where both its trainer and the component are there: the ids of its own program.
if command -v spm_train >/dev/null; then
  awk 'BEGIN { for (i = 0; i < 400; ++i) printf "line %d of a text, %d words and more\n", i, i * 7 % 31 }' >words.txt
  spm_train --input=words.txt --model_prefix=words --vocab_size=90 >report.txt 2>&1 || fail "$(cat report.txt)"
  if "$convert" words.txt --unit line -o words --tokenizer words.model >output.txt 2>&1; then
    spm_encode --model=words.model --output_format=id <words.txt | tr '\n' ' ' | sed 's/ $//' >expected-ids.txt
    [ "$(values_of words.bin 2)" = "$(cat expected-ids.txt)" ] || fail "other ids: $(values_of words.bin 2)"
  else
    grep -q 'built without SentencePiece' output.txt || fail "$(cat output.txt)"
  fi
fi

# Folders of JSON Lines are known by their names; what holds bytes 0 is no text.
mkdir -p lines
cp text.jsonl lines/a.jsonl
cp text.jsonl lines/B.JSONL
expect 0 'documents +4' "$convert" lines -o lines-out --tokenizer bytes
echo read me >lines/README.md
expect 2 "INPUT: found 2 files of JSON Lines and 1 others in 'lines', expected --format" \
  "$convert" lines -o bad --tokenizer bytes
expect 0 'documents +2' "$convert" lines -o lines-out --tokenizer bytes --ending .jsonl
printf 'a\n\000b\n' >zero.txt
expect 3 'zero.txt, line 2, byte 2: found a byte 0, expected text' "$convert" zero.txt -o bad --tokenizer bytes --unit line
expect 0 'bad lines +1' "$convert" zero.txt -o zero --tokenizer bytes --unit line --bad-lines skip

# What it writes is not what it reads.
mkdir -p own && echo text >own/a.txt
for again in 1 2; do
  expect 0 'documents +1' "$convert" own -o own/out --tokenizer bytes
done
expect 2 "output: found 'own/out.bin', which is input" "$convert" own/out.bin -o own/out --tokenizer bytes
expect 2 "output: found 'own/', expected a folder and a name" "$convert" folder -o own/ --tokenizer bytes

# Tokens that are there already.
printf '{"tokens": [5, 70000, 7], "labels": [-100, 70000, 7]}\n{"tokens": [1]}\n' >tokens.jsonl
expect 0 'type i32, 2 of them' "$convert" tokens.jsonl -o tokens
[ "$(values_of tokens.bin 4)" = '5 70000 7 1' ] || fail "$(values_of tokens.bin 4)"
[ "$(values_of tokens_loss_mask.bin 1)" = '0 1 1 1' ] || fail "$(values_of tokens_loss_mask.bin 1)"
expect 3 'tokens.jsonl, line 1, byte 0: found token 70000, expected at most 65535' \
  "$convert" tokens.jsonl -o bad --dtype u16

# Lines that are not what they should be.
{
  cat chat.jsonl
  printf '{"messages": [{"role": "bot", "content": ""}]}\nno json\n'
  cat chat.jsonl
} >bad.jsonl
for part in 1 50 4194304; do
  expect 3 'bad.jsonl, line 5, byte 251: messages\[0\].role: found "bot", expected' \
    "$convert" bad.jsonl -o bad --tokenizer bytes --template plain --part-bytes $part
  [ ! -e bad.idx ] || fail "a corpus was made of bad lines"
  rm -rf bad.partial
  expect 0 'bad.jsonl, line 6, .*malformed JSON.*left out' "$convert" bad.jsonl -o bad --tokenizer bytes --template plain \
    --part-bytes $part --bad-lines skip
  grep -q 'bad lines  2' output.txt || fail "bad lines are not counted: $(cat output.txt)"
  cat expected.txt expected.txt >twice.txt
  text_of bad.bin | cmp - twice.txt || fail "other tokens with $part"
  rm bad.bin bad.idx
done
head -c 5000 /dev/zero | tr '\0' x >long.jsonl
expect 3 'long.jsonl, line 1, byte 0: found a line of more than 1000 bytes' \
  "$convert" long.jsonl -o bad --tokenizer bytes --max-document-bytes 1000 --content text
expect 3 'long.jsonl, line 1, byte 0: found a line that is no text, no tokens and no chat' \
  "$convert" long.jsonl -o bad --tokenizer bytes
mkfifo fifo.jsonl
expect 3 'found a FIFO' timeout 20 "$convert" fifo.jsonl -o bad --tokenizer bytes
expect 3 'nowhere' "$convert" nowhere.jsonl -o bad --tokenizer bytes
expect 2 'threads' "$convert" chat.jsonl -o bad --tokenizer bytes --threads 0
[ -z "$(ls -d bad.partial bad.bin 2>/dev/null)" ] || fail "left behind: $(ls -d bad.*)"

# The same bytes for any number of threads and any cut.
awk 'BEGIN { for (i = 0; i < 4000; ++i) printf "{\"messages\": [{\"role\": \"user\", \"content\": \"%d\"}, {\"role\": \"assistant\", \"content\": \"%0*d\"}]}\n", i, i % 97, i }' >many.jsonl
many() { # many PREFIX OPTION...
  prefix=$1
  shift
  "$convert" many.jsonl -o "$prefix" --tokenizer "$qwen" --template chatml --quiet "$@"
}
many whole --threads 1 >report.txt
for threads in 1 2 8; do
  for part in 777 65536; do
    many other --threads $threads --part-bytes $part >report.txt
    same whole other
  done
done

# Saves after each part, so slowly that it can be killed at any.
slowly() {
  exec "$convert" many.jsonl -o killed --tokenizer "$qwen" --template chatml --part-bytes 512 --save-seconds 0
}

# Killed at any moment, it goes on where it was.
tries=0
for parts in 20 60 120; do
  slowly >report.txt 2>&1 &
  process=$!
  until [ "$(sed -n 's/^ "parts": \([0-9]*\),$/\1/p' killed.partial/progress.json 2>/dev/null || echo 0)0" -ge "${parts}0" ]; do
    tries=$((tries + 1))
    [ $tries -lt 3000 ] || fail "the conversion does not get on"
    sleep 0.01
  done
  kill -9 $process
  wait $process && fail "the conversion was over before it was killed"
  [ ! -e killed.idx ] || fail "an output is there before it is complete"
done
cp -r killed.partial kept
expect 2 "template: found \"llama3\", expected \"chatml\" as in the conversion to killed that was broken off|found a tokenizer without" \
  "$convert" many.jsonl -o killed --tokenizer "$qwen" --template llama3 --part-bytes 512
expect 2 '^lanepack-convert: --max-tokens: found 9, expected nothing as in the conversion to killed' \
  many killed --part-bytes 512 --max-tokens 9
expect 2 '^lanepack-convert: --loss: found "all", expected "assistant"' many killed --part-bytes 512 --loss all
expect 2 '^lanepack-convert: --part-bytes: found 4194304, expected 512' many killed
expect 2 '^lanepack-convert: input: found .*chat.jsonl.*, expected .*many.jsonl' \
  "$convert" chat.jsonl -o killed --tokenizer "$qwen" --template chatml --part-bytes 512
cp many.jsonl copy.jsonl
echo >>many.jsonl
expect 2 '^lanepack-convert: input: found .*many.jsonl.*, expected .*many.jsonl' many killed --part-bytes 512
touch -r copy.jsonl stamp
cp copy.jsonl many.jsonl && touch -r stamp many.jsonl
cmp kept/progress.json killed.partial/progress.json || fail "a refused conversion changed what was there"
truncate -s 10 kept/tokens.bin
mv kept short.partial
expect 2 'input: found' many short --part-bytes 512
expect 0 'documents +4,000' many killed --part-bytes 512 --restart
same whole killed

# Going on needs the same file, time of change included.
slowly >report.txt 2>&1 &
process=$!
until [ -e killed.partial/progress.json ]; do sleep 0.01; done
kill -9 $process
wait $process && fail "the conversion was over before it was killed"
expect 0 'of them before' many killed --part-bytes 512
same whole killed

# Broken off when all is converted, but not all files have their names.
mkdir held.bin
expect 1 'held.bin: cannot create the file: found a directory' many held
[ ! -e held.idx ] || fail "an index without its tokens"
rmdir held.bin
expect 0 'documents +4,000' many held
same whole held
[ ! -e held.partial ] || fail "held.partial was left behind"

# Two at a time do not mix.
slowly >report.txt 2>&1 &
process=$!
until [ -e killed.partial/progress.json ]; do sleep 0.01; done
expect 1 'killed.partial: another process is converting to killed' many killed --part-bytes 512
kill -9 $process
wait $process && fail "the conversion was over before it was killed"
echo >killed.partial/progress.json.tmp-1-2  # as a process leaves it that was killed while it saved
expect 0 'of them before' many killed --part-bytes 512
same whole killed
[ ! -e killed.partial ] || fail "killed.partial was left behind"

# What was saved and changed since is no corpus.
slowly >report.txt 2>&1 &
process=$!
until [ "$(sed -n 's/^ "parts": \([0-9]*\),$/\1/p' killed.partial/progress.json 2>/dev/null || echo 0)0" -ge 200 ]; do sleep 0.01; done
kill -9 $process
wait $process && fail "the conversion was over before it was killed"
printf '\377' | dd of=killed.partial/lengths.u32 bs=1 conv=notrunc 2>/dev/null
expect 1 'found lengths of .* tokens, expected .*: the file was changed; --restart begins anew' many killed --part-bytes 512
expect 0 'documents +4,000' many killed --part-bytes 512 --restart
same whole killed

# A device that is full: an error, no output, and what was done is not lost.
rm killed.*
status=0
(
  trap '' XFSZ
  ulimit -f 64
  many killed --part-bytes 4096 --save-seconds 0
) >output.txt 2>&1 || status=$?
[ $status = 1 ] || fail "exited with $status on a full device: $(cat output.txt)"
grep -q 'killed.partial/.*: cannot write the file at byte' output.txt || fail "$(cat output.txt)"
[ ! -e killed.idx ] && [ ! -e killed.bin ] || fail "an output was made on a full device"
expect 0 'of them before' many killed --part-bytes 4096
same whole killed
if [ -e /dev/full ]; then
  status=0
  many killed --json >/dev/full 2>output.txt || status=$?
  [ $status = 1 ] || fail "exited with $status where nobody gets the report"
fi
