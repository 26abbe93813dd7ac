#!/bin/sh
# Predict the inner loops of a kernel, without running them: make mca SYMBOL=matmul_q8 [ISA=avx2]
#
# Each innermost loop of the functions whose names begin with SYMBOL is taken from the object and
# given to llvm-mca, for this processor or $MCPU. A row has its place, instructions, accesses to the
# stack (spilt registers, 0 in a good tile), products of bytes or floats, and the predicted cycles.
# GOP/s is what they mean at this machine's clock, to be held against `bench kernels`, which follows:
# it waits for memory as well. llvm-mca knows no caches; on a processor that it does not know by name
# it predicts for the nearest one that it does. Of another machine's build (CC=aarch64-linux-gnu-gcc)
# only the loops are shown, as a Cortex-A76 would run them at 1 GHz.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -u
program=${1:?usage: make mca SYMBOL=matmul_q8 [ISA=avx2]}
symbol=${SYMBOL:-matmul_q8} build=$(dirname "$program")
fail() { echo "mca: $1" >&2 && exit 2; }
for tool in llvm-mca "${OBJDUMP:=objdump}"; do
    command -v "$tool" >/dev/null || fail "$tool is not installed (sh tools/setup.sh dev)"
done
here=1 cpu=native other=
case $(uname -m)-$build in
x86_64-*aarch64-*) here=0 cpu=cortex-a76 other='--mtriple=aarch64 --mattr=+i8mm' ;;
esac
[ $here = 1 ] || : "${ISA:?which set of the other machine, as in ISA=dotprod}"
isa=${ISA:-$("$program" info --json | sed -n 's/.*"chosen": *"\([^",]*\).*/\1/p' | head -n 1)}
object=$(for file in "$build"/kernels/*/"$isa".o "$build"/kernels/*/"${isa}_blocks.o"; do
    [ ! -e "$file" ] || ! nm "$file" | grep -q " t ${symbol}_$isa\$" || echo "$file"
done | head -n 1)
[ -n "$object" ] || fail "expected a set that has $symbol, found $isa"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# Write each loop to a file of its own, with what is counted in it in front. A loop is what lies
# between the target of a jump backwards and the jump, if no other one is within.
"$OBJDUMP" -d --no-show-raw-insn "$object" | awk -v want="^<${symbol}_$isa[.>]" -v dir="$dir" '
    function jumps(s) { return s ~ /^(j|b |b\.|cbn?z|tbn?z)/ }
    function keep(i, j,    k, text) {
        spilt = products = 0
        text = ""
        for (k = i; k <= j; k++) {
            spilt += ins[k] ~ /\(%r(sp|bp)|\[sp/
            if (ins[k] ~ /^(sdot|smull2?|smlal2?|smmla) /) products += ins[k] ~ /^sdot/ ? 16 : ins[k] ~ /^smm/ ? 32 : 8
            if (floats && ins[k] ~ /^fml[as] .*4s/) products += 4
            if (ins[k] ~ /^(\{vex\} )?vp(dpbusd|maddubsw)/) products += ins[k] ~ /zmm/ ? 64 : ins[k] ~ /ymm/ ? 32 : 16
            if (floats && ins[k] ~ /^vfn?m(add|sub)[123]*ps/) products += ins[k] ~ /zmm/ ? 16 : 8
            if (jumps(ins[k])) sub(/[0-9a-f]+$/, k < j ? "9f" : "1b", ins[k])
            text = text ins[k] "\n"
        }
        if (products)
            printf "# %s %d %d %d\n1:\n%s9:\n", name "+0x" at[i], j - i + 1, spilt, 2 * products, text >(dir "/" sprintf("%04d", ++loops))
    }
    function close_function(    i, k, from) {
        for (i = 1; i <= n; i++)
            if (jumps(ins[i]) && (to[i] in line) && line[to[i]] < i) {
                from = line[to[i]]
                for (k = from; k < i && !(jumps(ins[k]) && (to[k] in line) && line[to[k]] >= from && line[to[k]] < k); k++) ;
                if (k == i) keep(from, i)
            }
        n = 0
        split("", line)
    }
    BEGIN { floats = want ~ /f32|bf16|attn|swiglu|rmsnorm|rope|expsum/ }
    /^[0-9a-f]+ <.*>:$/ { if (on) close_function(); on = $2 ~ want; name = $2; gsub(/[<>:]/, "", name) }
    on && /^ *[0-9a-f]+:\t/ {
        n++
        sub(/:.*/, "", $1)
        at[n] = $1
        line[$1] = n
        $1 = ""
        sub(/^ */, "")
        sub(/ *(# |\/\/).*/, "")
        sub(/ *<.*>/, "")
        ins[n] = $0
        to[n] = $NF
    }
    END { if (on) close_function() }'
set -- "$dir"/[0-9]*
[ -e "$1" ] || fail "$object: no loop of $symbol multiplies"
clock=1
[ $here = 0 ] || clock=$("$program" bench limits -t 1 -o csv | awk -F, '/^clock/ { print $4 }')
printf '| %s | instructions | on the stack | operations | cycles | GOP/s at %s GHz |\n|---|---|---|---|---|---|\n' "$object" "$clock"
for file; do
    read -r _ place count spilt ops <"$file"
    # shellcheck disable=SC2086
    llvm-mca $other -mcpu="${MCPU:-$cpu}" -iterations=100 "$file" 2>"$dir/err" |
        awk -v place="$place" -v count="$count" -v spilt="$spilt" -v ops="$ops" -v clock="$clock" '
            /^Total Cycles/ { printf "| %s | %d | %d | %d | %.1f | %.1f |\n", place, count, spilt, ops, $3 / 100, ops / ($3 / 100) * clock; found = 1 }
            END { exit !found }' ||
        fail "$(head -n 1 "$dir/err")"
done
[ $here = 1 ] || exit 0
[ "$isa" != "${ISA:-}" ] || set -- --isa "$isa"
echo
exec "$program" bench kernels "$symbol" --isa "$isa"
