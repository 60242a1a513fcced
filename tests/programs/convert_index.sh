# The count index that lanepack-convert writes is the one that a program wants.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

mkdir -p docs/a docs/b
awk 'BEGIN { for (i = 0; i < 60; ++i) { f = "docs/" (i % 2 ? "a" : "b") "/" i ".txt"; for (k = 0; k < i; ++k) printf "%d words of a document %d\n", k, i >f; close(f) } }'
echo "not a text" >docs/b/notes.md
set -- --tokenizer bytes --min-tokens 32 --max-tokens 512
expect 0 'wrote +web.index' "$convert" docs --ending .txt --count-index web.index "$@" --long split
records=$(sed -n 's/^records  *//p' output.txt)
expect 0 "^index read: $records records of" "$LANEPACK_BIN/example_documents" docs web.index
expect 0 'step 0: [1-9]' "$LANEPACK_BIN/example_documents" docs web.index
# As many records as a corpus would have.
expect 0 "documents +$records\$" "$convert" docs --ending .txt -o web "$@" --long split
expect 0 'found +web.index' "$convert" docs --ending .txt --count-index web.index "$@" --long split
expect 0 '"made": true' "$convert" docs --ending .txt --count-index web.index "$@" --long split --restart --json
# Other documents or other stages are another index; a damaged one is made anew.
expect 0 'wrote +web.index' "$convert" docs --count-index web.index "$@" --long split
expect 0 '^index made' "$LANEPACK_BIN/example_documents" docs web.index
expect 0 '^index read' "$LANEPACK_BIN/example_documents" docs web.index
expect 0 'wrote +web.index' "$convert" docs --ending .txt --count-index web.index "$@"
expect 0 '^index made' "$LANEPACK_BIN/example_documents" docs web.index
head -c 100 web.index >short && mv short web.index
expect 0 '^index made' "$LANEPACK_BIN/example_documents" docs web.index
mkfifo fifo.index
expect 3 'fifo.index: cannot create the file: found a FIFO, expected a regular file or nothing' \
  "$convert" docs --count-index fifo.index "$@"
[ -p fifo.index ] || fail "the FIFO is gone"
expect 3 'nowhere/web.index: cannot create the file' "$convert" docs --count-index nowhere/web.index "$@"

# Nothing else is overwritten, and an index is no input.
expect 2 "count-index: found 'docs/a/1.txt', in the input|count-index: found 'docs/a/1.txt', which is input" \
  "$convert" docs --count-index docs/a/1.txt "$@"
expect 2 "count-index: found 'docs/web.index', in the input" "$convert" docs --count-index docs/web.index "$@"
expect 0 'wrote +docs/.web.index' "$convert" docs --count-index docs/.web.index "$@"
echo mine >mine.txt
expect 3 'mine.txt: found a file that is no index of a pipeline' "$convert" docs --count-index mine.txt "$@"
[ "$(cat mine.txt)" = mine ] || fail "a file was overwritten"
expect 2 'bad-lines: found skip with --count-index' "$convert" docs --count-index bad.index "$@" --bad-lines skip

# Lines of JSON become as many records as by conversion.
cat >chat.jsonl <<'END_OF_CHAT'
{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]}

{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}
END_OF_CHAT
for options in "--template plain" "--template plain --max-tokens 7 --long split --append-eot" "--template plain --loss all --long skip --max-tokens 22"; do
  # shellcheck disable=SC2086 # a list of words
  "$convert" chat.jsonl --count-index chat.index --tokenizer bytes $options --json | grep -E '"(records|tokens|loss_tokens)"' >index.txt
  # shellcheck disable=SC2086
  "$convert" chat.jsonl -o chat --tokenizer bytes $options --json | grep -E '"(documents|tokens|loss_tokens)"' |
    sed 's/documents/records/' >corpus.txt
  cmp index.txt corpus.txt || fail "index: $(cat index.txt) corpus: $(cat corpus.txt)"
done
printf '{"text": "one"}\n{"text": ""}\n{"text": "three"}\n' >text.jsonl
expect 0 'records +2$' "$convert" text.jsonl --count-index text.index --tokenizer bytes
cp -r "$LANEPACK_SOURCE/tests/golden/mds" golden
expect 0 'records +5$' "$convert" golden --content text --count-index mds.index --tokenizer bytes
expect 2 'count-index: found MDS samples that are no text' "$convert" golden --content tokens --count-index bad.index
echo '{"tokens": [1, 2]}' >tokens.jsonl
expect 2 'count-index: found token arrays' "$convert" tokens.jsonl --count-index bad.index
echo 'no json' >>text.jsonl
expect 3 'record 3, byte 0.*malformed|text.jsonl.*text_of_lines' "$convert" text.jsonl --content text --count-index bad.index --tokenizer bytes
expect 2 'output excludes' "$convert" docs -o both --count-index both.index --tokenizer bytes
expect 2 'output: found nothing' "$convert" docs --tokenizer bytes
[ ! -e bad.index ] || fail "an index was left behind"
