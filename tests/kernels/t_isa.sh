#!/bin/sh
# Every set that `info --json` lists is accepted by --isa and MIZZLE_ISA. All exact sets give the
# same logits and hidden states of a prompt; t_session_exact.c has threads and types of KV cache.
. tests/support/shell.sh
set -eu
ids=$(awk 'BEGIN { for (i = 0; i < 200; i++) printf "%s%d", i ? "," : "", (i * 37 + 5) % 250 }')
sets=$("$MIZZLE" info --json | sed 's/.*"sets": *\[//; s/\].*//; s/[",]/ /g')
case $sets in *scalar*) ;; *) echo "no sets: $sets"; exit 1 ;; esac
logits() { # FILE ARGUMENTS...
    out=$1
    shift
    "$MIZZLE" logits --ids "$ids" --hidden "$dir/h" -o "$out" "$@"
    cat "$dir/h" >>"$out"
}
logits "$dir/whole" -t 1
for isa in $sets; do
    logits "$dir/part" -t 3 --isa "$isa"
    [ "$isa" = blas ] || [ "$isa" = avx512bf16 ] || cmp "$dir/whole" "$dir/part"
    (export MIZZLE_ISA="$isa" && logits "$dir/other" -t 3)
    cmp "$dir/part" "$dir/other"
done
# The ways to walk the weights give the same bits, and info shows what is fixed.
for way in panels=1,ahead=0 panels=2,ahead=4096 run=1,ahead=64 run=1000000000; do
    logits "$dir/part" -t 3 --isa ",$way"
    cmp "$dir/whole" "$dir/part"
done
MIZZLE_ISA=scalar,run=77,panels=2,ahead=64 "$MIZZLE" info --json |
    grep -q '"chosen":"scalar","tune":{"panels":2,"run":77,"ahead":64,"ahead_decoded":64,"fixed":true}'
MIZZLE_ISA=,run=77,panels=2,ahead=64 "$MIZZLE" info | grep -qx 'tune    panels=2 run=77 ahead=64'
# When OpenBLAS takes the processor for an old one, a hint names the core type that helps.
case $sets in *avx2*blas*)
    blas() { OPENBLAS_CORETYPE=$1 "$MIZZLE" logits --ids 1 -o "$dir/part" --isa blas 2>"$dir/err"; }
    blas Prescott
    core=$(sed -n 's/.*OPENBLAS_CORETYPE=\([A-Za-z]*\) .*/\1/p' "$dir/err")
    [ -n "$core" ]
    blas "$core"
    if grep -q CORETYPE "$dir/err"; then exit 1; fi
    OPENBLAS_CORETYPE=Prescott "$MIZZLE" run -p x -n 1 --isa blas 2>&1 | grep -q "CORETYPE=$core "
esac
export MIZZLE_ISA=z80
set +e
fails 2 'scalar.*found z80' logits --ids 1 -o "$dir/part"
