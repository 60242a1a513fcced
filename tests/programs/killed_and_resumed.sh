# Processes are killed at any moment; the run goes on from the last checkpoint with another number of
# them, and is the uninterrupted run.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

command -v mpirun >/dev/null || exit 77
export OMPI_MCA_plm_rsh_agent= OMPI_MCA_btl=self,vader
verify=$LANEPACK_BIN/lanepack-verify
trainer=$LANEPACK_BIN/example_checkpoint_processes
[ -x "$trainer" ] || exit 77
steps=120

"$make_corpus" "$LANEPACK_SOURCE" corpus --paragraphs >/dev/null
"$trainer" corpus whole $steps >/dev/null

ranks() {
  mpirun --allow-run-as-root --oversubscribe -n "$@"
}

# A rank is killed while it runs; mpirun then ends the others.
kill_after() { # kill_after RANKS RANK PACKS: once the rank's log has so many packs
  tries=0
  until [ -s "killed/pid-$2" ] && [ "$(cat "killed/log-$2-of-$1.jsonl" 2>/dev/null | wc -l)" -ge "$3" ]; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "rank $2 does not get on"
    sleep 0.05
  done
  kill -9 "$(cat "killed/pid-$2")"
}

mkdir killed
for round in "4 0 45" "3 2 50" "6 1 40" "5 4 60"; do
  set -- $round
  rm -f killed/pid-*
  ranks "$1" "$trainer" corpus killed $steps 10 >killed.txt 2>&1 &
  launcher=$!
  kill_after "$@"
  status=0
  wait $launcher || status=$?
  [ $status != 0 ] || fail "the run of $1 was over before rank $2 was killed"
  ls killed/state-*.cbor >/dev/null 2>&1 || fail "no checkpoint after the first kill"
done
ranks 2 "$trainer" corpus killed $steps >/dev/null
expect 0 'the runs are the same' "$verify" whole killed
grep -q 'lines repeated' output.txt || fail "no step was done again, so nothing was resumed"

# Ranks one after another, each without a network, give the same run.
mkdir apart
isolated=
if unshare -rn true 2>/dev/null; then isolated="unshare -rn"; fi
for rank in 0 1 2; do
  RANK=$rank WORLD_SIZE=3 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=3 \
    $isolated "$trainer" corpus apart-$rank $steps >/dev/null
  cp apart-$rank/*.jsonl apart
done
expect 0 'the runs are the same' "$verify" whole apart

# What differs is named.
sed -e '30s/"record_digests":\["./"record_digests":["x/' -e '30s/"digest":"0/"digest":"F/' \
  -e '30s/"digest":"[1-9a-f]/"digest":"0/' -e '30s/"digest":"F/"digest":"f/' \
  whole/log-0-of-1.jsonl >changed.jsonl
expect 1 'differ first at step 2, pack 5, record 0: record [0-9]+ of epoch 0 has other tokens' \
  "$verify" whole changed.jsonl
expect 1 '"record": 0' "$verify" --json whole changed.jsonl
: >empty.jsonl
expect 1 'found no step in empty.jsonl, expected at least one to compare' "$verify" empty.jsonl empty.jsonl
expect 0 '"same": true' "$verify" --json whole killed
head -n 600 whole/log-0-of-1.jsonl >shorter.jsonl
expect 1 'step 50, pack 0: only the first run has this pack' "$verify" whole shorter.jsonl
expect 0 'the same in the steps that both have' "$verify" --common-steps whole shorter.jsonl
printf '{"step":1' >>shorter.jsonl
expect 0 '1 lines cut off' "$verify" --common-steps whole shorter.jsonl
expect 3 'nothing: .*cannot' "$verify" whole nothing
echo '{"step":1}' >broken.jsonl
expect 3 'broken.jsonl, line 1: found no key "lane"' "$verify" whole broken.jsonl
mkdir empty
expect 3 'no \*.jsonl' "$verify" whole empty
expect 2 'LOG' "$verify" whole
