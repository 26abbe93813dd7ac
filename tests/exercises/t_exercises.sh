#!/bin/sh
# The exercises as a learner meets them: each skeleton compiles without a warning and says that it is
# not written; what the project does passes, and a mistake in each is found (known.c). All in a
# folder of links to this tree, so that nobody's exercises/ is touched.
. tests/support/shell.sh
root=$(pwd)
BUILD=$(cd "${BUILD:-build}" && pwd) || exit 1
trap 'cleanup; rm -rf "$BUILD/exercises"' EXIT
for f in Makefile kernels weights model net router tools; do ln -s "$root/$f" "$dir/$f"; done
mkdir "$dir/build" "$dir/tests" && ln -s "$root"/tests/* "$dir/tests/"
rm "$dir/tests/exercises" && cp -r tests/exercises "$dir/tests/"
cd "$dir" || exit 1
rm -rf "$BUILD/exercises"
# one LINE COMMAND...: it fails, and this is the one line that is not make's.
one() {
    line=$1
    shift
    "$@" >"$dir/log" 2>&1 && fail "$*: does not fail"
    said=$(grep -Ev '^(CC|LINK) |^make|^0 of 1 point$' "$dir/log" | sed 's/^Makefile:[0-9]*: [*]* //; s/  Stop\.$//')
    [ "$said" = "$line" ] || fail "$*: not one line: $line"
}
one "exercise 1 is not started; type: sh tests/exercises/start.sh 1." make exercise N=1
for n in 0 13 1x '1 2'; do
    one "exercise: expected a number from 1 to 12, as in 'make exercise N=1', found '$n'." \
        make exercise N="$n"
    one "start.sh: expected an exercise from 1 to 12, found '$n'" sh tests/exercises/start.sh "$n"
done
for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
    sh tests/exercises/start.sh $n >"$dir/log" 2>&1 || fail "start.sh $n"
done
one "start.sh: exercises/01_rmsnorm_f32.c is there already; remove it to begin again" \
    sh tests/exercises/start.sh 1
for w in 0 1 2; do
    printf '#define WRONG %s\n#include "tests/exercises/known.c"\n' $w >exercises/known$w.c
done

for known in known0 known1 known2; do
    all="$all $BUILD/exercises/$known.kernels $BUILD/exercises/$known.check"
done
objects=$(ls exercises/*.c | sed "s,^,$BUILD/,; s/c$/o/")
make BUILD="$BUILD" $all $objects >"$dir/log" 2>&1 || fail "the skeletons do not build"
! grep -v '^make' "$dir/log" | grep -q warning || fail "a skeleton has warnings"
"$BUILD/exercises/known0.check" >"$dir/log" 2>&1 || fail "what the project does is not right"
[ "$(grep -c ': right$' "$dir/log")" -eq 4 ] || fail "not four exercises"
cat >"$dir/bench" <<END
#!/bin/sh
printf '%s\n' isa,shape,ns,gb_s,gop_s,doubtful \
    scalar,'"8, odd"',4000,1,2,'"busy; ran 5 %, or so"' exercise,'"8, odd"',2000,3,4, avx2,'"8, odd"',1000,5,6,
END
chmod +x "$dir/bench"
sh tests/exercises/check.sh "$BUILD/exercises/known0.kernels" add_f32 "$dir/bench" >"$dir/log" 2>&1 ||
    fail "scalar is not right"
grep -q '^exercise  *8 operations, 0 failed$' "$dir/log" || fail "not eight operations"
grep -Eq '^8, odd +2.00 us +3 +4 +4.00 us\?   1.00 us \(avx2\)$' "$dir/log" && grep -q '^?: the machine was busy' "$dir/log" ||
    fail "not its speed"
for w in check 'kernels --isa exercise'; do
    "$BUILD"/exercises/known1.$w >>"$dir/log" 2>&1 && fail "mistakes pass"
done
[ "$(grep -c '^FAIL ' "$dir/log")" -eq 12 ] || fail "not twelve mistakes found"
# Messages lead to the mistake: they name the buffer and its side, the shape, and what is usual.
for w in check 'kernels --isa exercise'; do
    "$BUILD"/exercises/known2.$w >>"$dir/log" 2>&1
done
for said in 'crashed behind u, at its byte [0-9]* of ' ' hd16 [0-9]*; a row sees a key too many' \
    'half [0-9]*; the pairs are x\[i\] and x\[i + half\]' ': take and end it first'; do
    grep -q -- "$said" "$dir/log" || fail "not said: $said"
done
sh tests/exercises/check.sh "$BUILD/exercises/known2.kernels" rope_f32 false >"$dir/log" 2>&1 &&
    fail "what is wrong is benchmarked"
grep -q '^shape' "$dir/log" && fail "what is wrong has a speed"

# Linking each skeleton takes seconds, more with a sanitizer, so one build does it.
case $BUILD in *-release) ;; *) exit 0 ;; esac
programs=$(ls exercises/0[1-8]_* | sed 's/\.c$/.kernels/')
programs="$programs $(ls exercises/09_* exercises/1* | sed 's/\.c$/.check/')"
make BUILD="$BUILD" $(echo "$programs" | sed "s,^,$BUILD/,; s, , $BUILD/,g") >"$dir/log" 2>&1 ||
    fail "the skeletons do not link"
for p in $programs; do
    isa=
    case $p in *.kernels) isa='--isa exercise' ;; esac
    one "${p%.*}.c: not written yet: put your code in place of UNWRITTEN()" "$BUILD/$p" $isa
done
one "exercises/02_expsum_f32.c: not written yet: put your code in place of UNWRITTEN()" \
    make BUILD="$BUILD" exercise N=2

# One whose bits differ fails with the program that repeats it, and shows its speed all the same.
cat >exercises/01_rmsnorm_f32.c <<END
#include "tests/exercises/exercise.h"
static void near(float *y, const float *x, const float *w, size_t n, float eps)
{
    for (int i = n; i < n; i++) /* natural code draws no warning */
        y[i] = 1.0 * x[i];
    kernels_scalar.rmsnorm_f32(y, x, w, n, eps * 2);
}
const struct kernels kernels_exercise = { .isa = "exercise", .rmsnorm_f32 = near };
END
made=$BUILD/exercises/01_rmsnorm_f32
make BUILD="$BUILD" exercise N=1 >"$dir/log" 2>&1 && fail "a wrong exercise passes"
grep -v '^make' "$dir/log" | grep -q warning && fail "a warning for natural code"
"$made.mizzle" info | grep -q '^chosen *exercise' && fail "a learner's set is used unasked"
again=$(sed -n "s,^FAIL .*; again: \($made.kernels --only rmsnorm_f32 .*\),\1,p" "$dir/log")
[ "$again" ] && grep -q '^0 of 1 point$' "$dir/log" && grep -Eq '^896 +[0-9.]+ us\?? +[0-9.]+ +[0-9.]+ +[0-9.]+ us\??   [0-9.]+ us \([a-z0-9]+\??\)$' "$dir/log" ||
    fail "no program or no speed of a wrong one"
$again 2>&1 | grep -q '^FAIL' || fail "does not repeat it: $again"
# A round in which only roundings differ does not hide the mistake of another.
cat >exercises/01_hidden.c <<END
#include "tests/exercises/exercise.h"
static void hidden(float *y, const float *x, const float *w, size_t n, float eps)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = fmaf(x[i], x[i], sum);
    for (size_t i = 0; i < n; i++)
        y[i] = n < 16 ? 7 : x[i] * (1.0f / sqrtf(sum / (float)n + eps)) * w[i];
}
const struct kernels kernels_exercise = { .isa = "exercise", .rmsnorm_f32 = hidden };
END
make BUILD="$BUILD" "$BUILD/exercises/01_hidden.kernels" >"$dir/log" 2>&1 || fail "01_hidden.c"
"$BUILD/exercises/01_hidden.kernels" --isa exercise >"$dir/log" 2>&1 && fail "7 is right"
grep -q '^FAIL.*, found 7 ' "$dir/log" || fail "a mistake is hidden by roundings"
# What is right with one thread and wrong with two does not even link.
sed 's/float sum = 0/static float sum; sum = 0/' exercises/01_hidden.c >exercises/01_static.c
make BUILD="$BUILD" "$BUILD/exercises/01_static.kernels" >"$dir/log" 2>&1 && fail "threads share a sum"
grep -q '01_static.o: expected no static data but const, which' "$dir/log" || fail "01_static.c"
rm exercises/01_hidden.c exercises/01_static.c

# The points of all: one is wrong, one does not compile, one is not started, one is right, others
# are as they were copied.
echo 'no C' >exercises/03_rope_f32.c
rm exercises/04_attn_f32.c
sed 's/near/whole/; s/eps \* 2/eps/' exercises/01_rmsnorm_f32.c >exercises/05_swiglu_f32.c
make BUILD="$BUILD" exercise >"$dir/log" 2>&1 || fail "no points"
make -s BUILD="$BUILD" exercise JSON=1 >"$dir/json" 2>>"$dir/log" || fail "no JSON"
while read -r n points state; do
    grep -Eq "^ ?$n  [a-z0-9_]+ +$points / 1  $state\$" "$dir/log" || fail "exercise $n: not $state"
    grep -Eq "^\{\"n\":$n,\"name\":\"[a-z0-9_]+\",\"state\":\"$state\",\"points\":$points,\"of\":1\}" \
        "$dir/json" || fail "exercise $n: not $state in JSON: $(cat "$dir/json")"
done <<END
1 0 wrong
2 0 not written
3 0 does not compile
4 0 not started
5 1 right
12 0 not written
END
grep -q '^ *points: 1 / 12$' "$dir/log" && grep -q '^{"points":1,"of":12,' "$dir/json" ||
    fail "not one point of twelve"
make -s BUILD="$BUILD" exercise N=4 JSON=1 2>>"$dir/log" | grep -q '"state":"not started"' ||
    fail "no JSON of one exercise"
