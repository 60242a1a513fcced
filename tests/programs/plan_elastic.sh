# The plan of a run is the same, pack for pack, whatever the world size, and joined over all ranks.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

"$make_corpus" "$LANEPACK_SOURCE" corpus --paragraphs
for policy in sequential window calendar replicated auto; do
  options="--corpus corpus.bin --lanes 12 --records-per-pack 4 --lookahead 4 --policy $policy --seed 5 --epochs 2"
  "$plan" $options --world 1 --rank all | sed 's/"rank":[0-9]*,//' | sort >whole.txt
  [ "$(wc -l <whole.txt)" -gt 100 ] || fail "a plan of $(wc -l <whole.txt) packs is no test"
  # Finding a calendar's numbers takes seconds for each rank.
  worlds="2 3 4 6 12"
  if [ $policy = calendar ]; then worlds=3; fi
  for world in $worlds; do
    rank=0
    : >joined.txt
    while [ $rank -lt $world ]; do
      "$plan" $options --world $world --rank $rank >>joined.txt
      rank=$((rank + 1))
    done
    sed 's/"rank":[0-9]*,//' joined.txt | sort >parts.txt
    cmp whole.txt parts.txt || fail "$policy plans something else for $world ranks"
  done

  # Started in the middle it goes on as if it had not stopped.
  "$plan" $options | awk -F'[:,]' '$2 >= 7' >tail.txt
  "$plan" $options --start-step 7 | cmp - tail.txt || fail "$policy plans something else from step 7 on"
done

# Every record once an epoch: drop_last leaves out less than a step.
"$plan" --lengths "$lengths/gsm8k_train.u32" --lanes 4 --records-per-pack 8 --seed 1 --epochs 1 |
  sed 's/.*"records":\[\([^]]*\)\].*/\1/' | tr ',' '\n' | sort -n >ids.txt
[ "$(wc -l <ids.txt)" = 992 ] || fail "$(wc -l <ids.txt) records instead of 992"
[ "$(uniq ids.txt | wc -l)" = 992 ] || fail "a record came twice"
[ "$(tail -n 1 ids.txt)" -lt 1000 ] || fail "a record that is not in the corpus"
