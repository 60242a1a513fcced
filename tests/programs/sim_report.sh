# lanepack-sim --report: a page with pictures.
. "$LANEPACK_SOURCE/tests/programs/common.inc"

drawing=no
for python in python3 /usr/bin/python3; do
  "$python" -c 'import matplotlib' 2>/dev/null && drawing=yes
done
run="$sim --lengths $lengths/vlm_mathv.u32 --ranks 4 --records-per-rank 8 --steps 96 --seed 2"

status=0
$run --policy window,auto,pooled_lpt --report page --report-ranks 2,4,16 --json >rows.json 2>err.txt || status=$?
[ -s page/report.json ] || fail "no data: $(cat err.txt)"
grep -q '"rank_costs"' page/report.json || fail "no rank costs in the data"
# 4 policies; window, auto and sequential at 2 other numbers of ranks and 5 other lookaheads; auto at 4
# other displacement bounds.
grep -q '^29 simulations$' err.txt || fail "does not say how much there is to do: $(cat err.txt)"
[ "$(grep -c 'note: .*Policy replicated' err.txt)" = 1 ] || fail "a note is not said once: $(cat err.txt)"
grep -qF '"steps":[96,96,64],"warmup":[0,0,32]' page/report.json || fail "not fewer steps at more ranks"
if [ $drawing = no ]; then
  sed '/simulations/q' err.txt | grep -q 'warning: .*matplotlib' || fail "the warning comes late"
  [ $status != 0 ] || fail "drew without matplotlib"
  grep -q 'python3-matplotlib' err.txt || fail "the message does not say what to install"
  exit 77
fi
[ $status = 0 ] || fail "exit status $status: $(cat err.txt)"
for picture in ranks steps over-ranks over-lookahead lengths; do
  for kind in png svg; do [ -s "page/c0-$picture.$kind" ] || fail "no c0-$picture.$kind"; done
done
[ "$(grep -c '<svg' page/index.html)" -ge 5 ] || fail "the pictures are not in the page"
grep -Eq '(src|href)="(https?:)?//' page/index.html && fail "the page needs the network"
# sequential is in the page though nobody asked for it.
grep -q '<th><i[^>]*></i>sequential' page/index.html || fail "no row of sequential"
[ "$(grep -c '"policy"' rows.json)" = 4 ] || fail "not all rows are printed"
ls page/*.tmp* >/dev/null 2>&1 && fail "temporary files are left"

$run --policy window --report page --report-ranks 0 >out.txt 2>err.txt && fail "accepted 0 ranks"
: >file
$run --policy window --report file/page >out.txt 2>err.txt && fail "made a folder in a file"
grep -q 'file/page' err.txt || fail "the message does not name the folder"
exit 0
