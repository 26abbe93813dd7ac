#!/bin/sh
# The demo pair: the files are those of the training, show what they must, and notice damage.
. tests/support/demo_pair.sh
milli=weights/milli

(cd $milli && sha256sum -c SHA256SUMS >/dev/null 2>"$dir/err") ||
    fail "files are not those of SHA256SUMS"
[ "$(cat $milli/* | wc -c)" -le $((25 * 1024 * 1024)) ] || fail "more than 25 MB"

# The paper's main result, on questions of a seed that differs in each run: policies never, mlp,
# random and always. The bounds are four standard deviations from what 1,000 questions show. With
# fewer (MILLI_QUESTIONS), for slow builds, they are wider.
seed=$(($(date +%s) % 1000003))
questions=${MILLI_QUESTIONS:-400}
"$MIZZLE" eval --questions "$questions" --seed $seed --policy never,mlp,random,always \
    --json -q >"$dir/out" || fail "eval, seed $seed"
awk -v seed=$seed -v wide="$questions" '
    BEGIN { wide = sqrt(400 / wide) }
    function field(name) {
        if (!match($0, "\"" name "\":[-0-9.e]+")) exit 1
        return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0
    }
    { accuracy[NR] = field("accuracy"); routed[NR] = field("routed") }
    END {
        edge = accuracy[1]; gain = accuracy[2] - edge
        ok = NR == 4 && edge > 0.43 - 0.1 * wide && edge < 0.43 + 0.1 * wide &&
            accuracy[4] >= 0.92 - 0.055 * wide && routed[2] <= 0.051 + 0.019 * wide &&
            accuracy[2] >= (wide > 1 ? 1.3 : 1.6) * edge &&
            gain >= (1 - 0.2 * wide) * (accuracy[4] - edge) &&
            accuracy[3] - edge < gain / (wide > 1 ? 2 : 3)
        if (!ok) print "seed " seed ": edge " edge ", routed " accuracy[2] " at " routed[2] \
            ", random " accuracy[3] ", cloud " accuracy[4]
        exit !ok
    }' "$dir/out" || fail "the pair does not show what it must"

# All sizes share one vocabulary, and each has its router.
for size in 0.1 1; do
    "$MIZZLE" eval -m $milli/edge-$size.gguf --questions 5 --policy never --json -q \
        >"$dir/out" || fail "edge-$size"
    "$MIZZLE" run -m $milli/edge-$size.gguf --question 1 --policy mlp --cloud off -q \
        >"$dir/out" 2>&1 || fail "edge-$size: router"
done

# Damage is noticed; t_gguf.c has each bit and each cut.
cp $milli/edge-0.1.gguf "$dir/bad.gguf"
printf x | dd of="$dir/bad.gguf" bs=1 seek=60000 conv=notrunc 2>/dev/null
refuses 3 'bad.gguf: .*: the file is damaged' run -m "$dir/bad.gguf" --policy never --cloud off -p x -n 1 -q
exit 0
