#!/bin/sh
# Every set that `info --json` lists is accepted by --isa and MIZZLE_ISA. All exact sets give the
# same logits and hidden states of a prompt, with any number of threads and each KV cache type.
set -eu
mizzle=${MIZZLE:-build/mizzle}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
ids=$(awk 'BEGIN { for (i = 0; i < 200; i++) printf "%s%d", i ? "," : "", (i * 37 + 5) % 250 }')
sets=$("$mizzle" info --json | sed 's/.*"sets": *\[//; s/\].*//; s/[",]/ /g')
case $sets in *scalar*) ;; *) echo "no sets: $sets"; exit 1 ;; esac
logits() { # FILE ARGUMENTS...
    out=$1
    shift
    "$mizzle" logits --ids "$ids" --hidden "$tmp/h" -o "$out" "$@"
    cat "$tmp/h" >>"$out"
}
for kv in f32 f16 q8; do
    logits "$tmp/whole" --kv $kv -t 1
    threads=1
    for isa in $sets; do
        threads=$((threads % 8 + 1))
        logits "$tmp/part" --kv $kv -t $threads --isa "$isa"
        [ "$isa" = blas ] || [ "$isa" = avx512bf16 ] || cmp "$tmp/whole" "$tmp/part"
        (export MIZZLE_ISA="$isa" && logits "$tmp/other" --kv $kv -t $threads)
        cmp "$tmp/part" "$tmp/other"
    done
done
# The ways to walk the weights give the same bits, and info shows what is fixed.
logits "$tmp/whole"
for way in panels=1,ahead=0 panels=2,ahead=4096 run=1,ahead=64 run=1000000000; do
    logits "$tmp/part" -t 3 --isa ",$way"
    cmp "$tmp/whole" "$tmp/part"
done
MIZZLE_ISA=scalar,run=77,panels=2,ahead=64 "$mizzle" info --json |
    grep -q '"chosen":"scalar","tune":{"panels":2,"run":77,"ahead":64}'
MIZZLE_ISA=,run=77,panels=2,ahead=64 "$mizzle" info | grep -qx 'tune    panels=2 run=77 ahead=64'
# When OpenBLAS takes the processor for an old one, a hint names the core type that helps.
case $sets in *avx2*blas*)
    blas() { OPENBLAS_CORETYPE=$1 "$mizzle" logits --ids 1 -o "$tmp/part" --isa blas 2>"$tmp/err"; }
    blas Prescott
    core=$(sed -n 's/.*OPENBLAS_CORETYPE=\([A-Za-z]*\) .*/\1/p' "$tmp/err")
    [ -n "$core" ]
    blas "$core"
    if grep -q CORETYPE "$tmp/err"; then exit 1; fi
esac
status=0
MIZZLE_ISA=z80 "$mizzle" logits --ids 1 -o "$tmp/part" 2>"$tmp/err" || status=$?
[ "$status" -eq 2 ] && grep -q 'z80.*scalar' "$tmp/err"
