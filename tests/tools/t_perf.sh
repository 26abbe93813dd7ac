#!/bin/sh
# tools/perf.sh: the recording is kept, kernels have their names, the system's time is left out; one
# line where perf is missing or may not count. tools/speed.sh and mca.sh.
. tests/support/shell.sh
mizzle=$(realpath "$MIZZLE")
root=$(pwd)
mkdir "$dir/bin" "$dir/tree" && ln -s "$root/weights" "$dir/tree/weights" && cd "$dir/tree" || exit 1
perf_sh() { sh "$root/tools/perf.sh" "$mizzle" >"$dir/out" 2>"$dir/err"; }
for tool in sh cat mkdir rm grep; do ln -s "$(command -v $tool)" "$dir/bin/$tool"; done
(PATH=$dir/bin && perf_sh) && fail "runs without perf"
one_line
says "perf is not installed"
printf '#!/bin/sh\necho "Permission denied" >&2\nexit 255\n' >"$dir/bin/perf"
chmod +x "$dir/bin/perf"
(PATH=$dir/bin:$PATH && perf_sh) && fail "runs without permission"
one_line
says "does not let perf count (kernel.perf_event_paranoid is "
printf '#!/bin/sh\ncase "$*" in *" true") exit 0 ;; esac\nexit 255\n' >"$dir/bin/perf"
(PATH=$dir/bin:$PATH && perf_sh)
[ $? -eq 1 ] || fail "the status of a program that does not start"
one_line
says "$mizzle cannot be started, or perf cannot record it"
# tools/speed.sh: a file beside a peer, medians, the row of another processor kept, its own replaced.
case $mizzle in */x86_64-release/*)
    cat >"$dir/peer" <<'END'
[ "$1" = -rtr ] || exit 2
echo 'warning: a build for tests'
echo 'build_commit,n_prompt,n_gen,n_depth,avg_ts'
echo '"a, b","8","0","0","1.5"'
echo '"a, b","0","2","0","2.5"'
END
    printf '%s\n' before '<!-- make speed -->' '| processor | date |' '|---|---|' '| another, 3 threads | then |' '' \
        '### another, 3 threads' '' old '' '<!-- end of make speed -->' after >"$dir/page"
    edge=$root/weights/milli/edge-0.5.gguf speed=$mizzle
    speed_sh() { # ROUNDS [MODELS]
        TYPES='' MODELS=${2:-$edge} LLAMA_BENCH="sh $dir/peer -rtr 1" ROUNDS=$1 SPEED=$dir/page THREADS=1 \
            PROMPT=8 TOKENS=2 sh "$root/tools/speed.sh" "$speed" >"$dir/out" 2>"$dir/err"
    }
    speed_sh 2 || fail "speed.sh: $(cat "$dir/err")"
    # Limits that are known: no time is spent on them, and one is doubtful.
    speed=$dir/mizzle
    cat >"$dir/limits" <<'END'
limit,unit,n_threads,one_thread,all_threads,bytes,doubtful,cpu
clock in GHz (dec jnz),GOP/s,1,3.5,3.5,,,x
read from memory,GB/s,1,12.5,12.5,,,x
f32 ymm (vfmadd231ps),GOP/s,1,100.0,100.0,,,x
"int8 ymm (vpmaddubsw, vpaddw)",GOP/s,1,200.0,200.0,,others kept 1.0 processors busy,x
END
    printf '#!/bin/sh\n[ "$2" != limits ] || exec cat "%s/limits"\nexec "%s" "$@"\n' "$dir" "$mizzle" >"$speed"
    chmod +x "$speed"
    speed_sh 1 || fail "speed.sh: $(cat "$dir/err")"
    [ "$(grep -c '^### ' "$dir/page")" -eq 1 ] && ! grep -qx old "$dir/page" && [ "$(sed -n '1p;$p' "$dir/page" | xargs)" = 'before after' ] &&
        [ "$(grep -c '^| .*, [13] threads | ' "$dir/page")" -eq 2 ] && [ "$(sed -n 6p "$dir/page")" = '| another, 3 threads | then |' ] &&
        sed -n 5p "$dir/page" | grep -q '^| [^|]*, 1 threads | 20..-..-.. | [a-z0-9]* | 12.5 |  |  | [0-9.]* to [0-9.]* |  |  | [0-9.]* to [0-9.]* |$' ||
        fail "speed.sh: the page is $(cat "$dir/page")"
    awk -F' *[|] *' '/^[|] edge-0.5, [A-Z0-9_]* [|] (pp8|tg2) / { n++; r = $4 / $6; bad += !($6 == "1.5" || $6 == "2.5") || r / $7 < 0.99 || r / $7 > 1.01 || $5 !~ / % (memory|int8)/ }
        END { exit n != 2 || bad }' "$dir/page" || fail "speed.sh: the rows are $(cat "$dir/page")"
    tr '\n' ' ' <"$dir/page" | grep -q 'one turn. The peer is `sh .*/peer -rtr 1`, build a. Memory is read at 12.5 GB/s; at most 100.0 GFLOP/s of f32 *, 200.0 GOP/s of int8; 3.5 GHz; doubtful[.]' &&
        grep -q '| pp8 | .* % int8, doubtful | ' "$dir/page" || fail "speed.sh: the page is $(cat "$dir/page")"
    cp "$dir/page" "$dir/before"
    speed_sh 1 "$edge $edge" && fail "speed.sh: two files of one name"
    says '^speed.sh: MODELS: expected files of different names, found two edge-0.5$'
    speed_sh 1 "$dir/none.gguf" && fail "speed.sh: a file that is not there"
    one_line
    echo 'echo "| model | test | t/s |"' >"$dir/peer"
    speed_sh 1 && fail "speed.sh: a peer that prints a table"
    says 'peer -rtr 1: expected the columns n_prompt, n_gen and avg_ts, found | model | test | t/s |$'
    echo 'echo "no such model" >&2; exit 1' >"$dir/peer"
    speed_sh 1 && fail "speed.sh: a peer that fails"
    says 'peer -rtr 1: no such model$'
    cmp "$dir/page" "$dir/before" || fail "speed.sh: the page after a failure"
    sed -i.old '/^<!-- end/d' "$dir/page"
    speed_sh 1 && fail "speed.sh: a page without an end"
    says 'page: expected a line <!-- end of make speed -->, found none$'
    ;;
esac

# tools/mca.sh: the loops of a kernel, none of which may be without products.
case $mizzle in */x86_64-release/*) tool=llvm-mca ;; *) tool= ;; esac # as gcc makes them, without checks
if [ -n "$tool" ] && command -v $tool >/dev/null; then
    SYMBOL=matmul_q8 ISA=avx2 sh "$root/tools/mca.sh" "$mizzle" >"$dir/out" 2>"$dir/err" || fail "mca.sh: $(cat "$dir/err")"
    awk -F'|' '/matmul_q8_avx2\+0x/ { loops++; bad += $3 < 20 || $5 < 1024 || $6 <= 1 || $7 <= 1 }
        END { exit loops < 3 || bad }' "$dir/out" || fail "mca.sh: $(cat "$dir/out")"
    SYMBOL=zork sh "$root/tools/mca.sh" "$mizzle" >"$dir/out" 2>"$dir/err" && fail "mca.sh finds zork"
    says "expected a set that has zork"
    MCPU=zork SYMBOL=matmul_q8 ISA=avx2 sh "$root/tools/mca.sh" "$mizzle" >"$dir/out" 2>"$dir/err" && fail "mca.sh knows zork"
    says "mca: 'zork' is not a recognized processor"
else
    [ -z "$tool" ] || echo "SKIP mca.sh: no llvm-mca"
fi
# Of another machine's object, which cannot run here: four instructions, one on the stack.
if [ "$(uname -m)" = x86_64 ] && command -v llvm-mca aarch64-linux-gnu-as aarch64-linux-gnu-objdump >/dev/null; then
    mkdir -p "$dir/aarch64-release/kernels/arm"
    printf '%s\n' matmul_q8_dotprod: 1: 'ldr q0, [sp, #16]' 'sdot v1.4s, v2.16b, v0.4b[1]' 'subs x0, x0, #1' 'b.ne 1b' ret |
        aarch64-linux-gnu-as -march=armv8.2-a+dotprod -o "$dir/aarch64-release/kernels/arm/dotprod.o" - || fail "as"
    ISA=dotprod OBJDUMP=aarch64-linux-gnu-objdump sh "$root/tools/mca.sh" "$dir/aarch64-release/mizzle" >"$dir/out" 2>"$dir/err" ||
        fail "mca.sh of aarch64: $(cat "$dir/err")"
    shows '^| matmul_q8_dotprod+0x0 | 4 | 1 | 32 | [1-9]'
else
    echo "SKIP mca.sh of aarch64: no llvm-mca, or no binutils for it"
fi

if ! perf record -q -e cpu-clock:u -o try true >"$dir/err" 2>&1; then
    skip "perf is not installed, or may not count here"
fi
export BENCH="model --isa scalar -t 1 -p 64 -n 8 -r 3"
perf_sh || fail "perf.sh"
grep -q '\[\.\] *matmul_q8_scalar$' "$dir/out" || fail "no kernel has its name"
! grep -qF '[k]' "$dir/out" || fail "the system's time is in it"
[ -s build/perf/data ] || fail "the recording is not kept"
SYMBOL=q8_scal perf_sh || fail "SYMBOL"
grep -q 'matmul_q8_scalar$' "$dir/out" && grep -Eq '^ *[0-9.]+ %  [a-z]+ ' "$dir/out" &&
    [ -s build/perf/matmul_q8_scalar.txt ] || fail "no instructions of the symbol"
perf annotate -i build/perf/data --stdio matmul_q8_scalar 2>/dev/null | grep -q 'scalar_dot_int' ||
    fail "perf annotate does not show the source"
SYMBOL=zork perf_sh && fail "an unknown symbol is found"
grep -q "no symbol with 'zork'" "$dir/err" || fail "an unknown symbol"
BENCH=--nix perf_sh && fail "a benchmark that fails passes"
exit 0
