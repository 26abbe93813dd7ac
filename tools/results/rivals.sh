# shellcheck shell=sh disable=SC2034,SC2154
# rivals - what a router has to beat, and whether it does: the same network on features that need no
# hidden state (combined), a table of the last two ids (context), confidence. Each size of edge has
# routers of five trainings, on other draws of the same samples; `mix` reads hidden state and
# features. Differences are to combined. The first job alone is cheap, and the one that is checked.
HEADER=edge,policy,router,target,questions,trainings,routed,accuracy,accuracy_low,accuracy_high
HEADER=$HEADER,gain_low,gain_high,pgr,pgr_low,pgr_high,difference,difference_low,difference_high
CHECKED=1

rivals_ends() { rivals_eval "$1" --policy never,always; } # SIZE

rivals_eval() { # SIZE OPTIONS...
    size=$1
    shift
    evaluate "edge=edge-$size,${HEADER#edge,}" -m "weights/milli/edge-$size.gguf" \
        --cloud-model weights/milli/cloud.gguf --questions "${QUESTIONS:-3000}" "$@"
}

rivals_rows() { # SIZE
    # shellcheck disable=SC2086
    mizzle router collect -q -t 1 $patient -m "weights/milli/edge-$1.gguf" \
        --cloud-model weights/milli/cloud.gguf --questions "${SAMPLES:-1000}" --labels divergent \
        -o "$here/samples" >/dev/null
    for head in mlp mix combined context; do
        mizzle router train -q -t 1 --samples "$here/samples" --head $head --repeats 5 \
            -o "$here/$head" >/dev/null
    done
    rivals_eval "$1" --target-routed 0.05 --repeats 5 --against combined=combined --policy \
        "mlp=$here/mlp,mlp=$here/mix,combined=$here/combined,context=$here/context,entropy,max-prob"
}

jobs() {
    for size in 0.1 0.5 1; do job rivals_ends $size; done
    for size in 0.1 0.5 1; do job rivals_rows $size; done
}

rivals_of() { # SIZE ROUTER: its accuracy in percent
    figure '%.1f' "100 * $(value rivals accuracy "edge=edge-$1" "router=$2")"
}

draws() {
    right="answers that are right (%)"
    shape rivals "edge,router,$right,low,high" '
        {
            print of("edge"), of("router"), percent("accuracy"), percent("accuracy_low"), percent("accuracy_high")
        }' |
        plot rivals.svg --by edge --bars router --y "$right" --interval low,high \
            --title "Right answers at 5 % from the cloud: for edge-0.5, $(rivals_of 0.5 mix) % with hidden\
 state and confidence (mix), $(rivals_of 0.5 combined) % with confidence alone (combined)" \
            --note "3,000 answers, means of five trainings; lines: 95 % intervals. never and always: each model alone."
}
