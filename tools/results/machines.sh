# shellcheck shell=sh disable=SC2034,SC2154
# machines - the same answers with every kernel set, and how long they take on a machine with it.
#
# `answers` is a hash of texts and traces of all questions asked with this set, `first` of the first
# 24 of them, which are all that an emulated processor is asked. Times are computed (network.py) with
# the steps of constants.csv, for 100 questions: ms with a round trip of 100 ms, 10 Mbit/s and 1 % of
# the packets lost, ms_alone without a cloud.
questions=${QUESTIONS:-100}
few=24
[ "$questions" -gt $few ] || few=$questions
HEADER=set,t_ms,t_from,prefill_ms,questions,answers,first,ms_alone,ms

machines_hash() { # N: of the first N answers, which must be there
    sed -n 's/^{"policy":"mlp","share".*"text":\(".*"\),"right":.*"trace":\("[^"]*"\).*/\1 \2/p' \
        "$here/answers" | head -n "$1" >"$here/hashed"
    found=$(wc -l <"$here/hashed")
    [ "$found" -eq "$1" ] || { echo "expected $1 answers, found $found" >&2 && return 1; }
    sha256sum <"$here/hashed" | cut -c1-16
}

machines_ask() { # QUESTIONS OPTIONS...: ask, and keep the answers
    machines_questions=$1
    shift
    rm -f "$here/answers"
    evaluate_ask "$here/answers" --questions "$machines_questions" "$@"
}

machines_ms() { # SET OPTIONS...: print the time of an answer on a machine with it (network.py)
    machines_of=$1
    shift
    with_numpy network.py --edge-ms "$(constant "t_$machines_of")" --prefill-ms "$(constant "prefill_$machines_of")" \
        "$@" "$here/answers" | columns ms
}

machines_cloud() { # SET QUESTIONS: ask the server at $url
    machines_ask "$2" --policy mlp --cloud-url "$url"
}

machines_row() { # SET QUESTIONS: of the first QUESTIONS answers, which are kept, times of all
    answers=$(machines_hash "$2")
    first=$(machines_hash "$few")
    [ "$2" -eq "$questions" ] || machines_cloud "$1" "$questions"
    ms=$(machines_ms "$1" --cloud-ms "$(constant cloud_ms)" --latency 100 --kbit-s 10000 --loss 0.01 --ahead 1)
    unset MIZZLE_ISA
    machines_ask "$questions" --policy never
    ms_alone=$(machines_ms "$1" --ahead 0)
    from=$(value constants source "name=t_$1")
    echo "$1,$(constant "t_$1"),${from%%:*},$(constant "prefill_$1"),$2,$answers,$first,$ms_alone,$ms"
}

machines_need() { # SET: leave out the job if this processor does not have the set
    mizzle info >"$here/info"
    case " $(sed -n 's/^sets *//p' "$here/info") " in
    *" $1 "*) ;;
    *) skip "set=$1" "this processor has no $1" ;;
    esac
}

machines_set() { # SET
    machines_need "$1"
    export MIZZLE_ISA="$1"
    serve
    machines_cloud "$1" "$questions"
    machines_row "$1" "$questions"
}

# NEON, emulated: cloud and edge are both the program for aarch64.
machines_neon() {
    command -v qemu-aarch64 >/dev/null || skip set=neon "no qemu-aarch64 (sh tools/setup.sh cross)"
    arm=build/aarch64-release/mizzle
    env -u MAKEFLAGS -u MFLAGS make -s CC=aarch64-linux-gnu-gcc $arm >"$here/make" 2>&1 ||
        skip set=neon "no program for aarch64 (sh tools/setup.sh cross)"
    native=$mizzle mizzle=$here/emulated
    printf '#!/bin/sh\nexec qemu-aarch64 %s "$@"\n' $arm >"$mizzle"
    chmod +x "$mizzle"
    export MIZZLE_ISA=neon
    serve
    machines_cloud neon "$few"
    unset MIZZLE_ISA
    kill "$serve_process"
    mizzle=$native
    serve
    machines_row neon "$few"
}

jobs() {
    for set in scalar avx2 avx512vnni; do job machines_set $set; done
    job machines_neon
}
CHECKED=3

MEASURED=date,processor,set,threads,t_ms,prefill_ms

machines_bench() { # SET PROMPT TOKENS SAMPLES: the fastest sample of each
    machines_need "$1"
    mizzle bench model --shape qwen2.5-0.5b --type q8_0 -t 1 --isa "$1" -p "$2" -n "$3" -r "$4" \
        -o csv >"$here/bench.csv"
    tr -d '"' <"$here/bench.csv" | columns n_prompt,n_gen,samples_ns |
        awk -F, -v head="$(today),$(processor),$1,1" '
            {
                n = split($3, ns, " ")
                for (least = ns[1]; n > 0; n--) if (ns[n] < least) least = ns[n]
                ms[$2 > 0] = least / 1e6 / ($1 + $2)
            }
            END { printf "%s,%.2f,%.2f\n", head, ms[1], ms[0] }'
}

measures() {
    job machines_bench scalar 8 2 1
    for set in avx2 avx512vnni; do job machines_bench $set 64 16 3; done
}

draws() {
    # Sets that were asked as many questions must have the same `answers`, and all the same `first`.
    title=$(awk -F, '
        NR == 2 { first = $7 }
        NR > 1 { differ += $7 != first || ($5 in answers && answers[$5] != $6); answers[$5] = $6 }
        END {
            print NR - 1 " kernel sets give " (differ ? "different answers" : \
                "the same answers; only the time differs")
        }' "$results/machines.csv")
    shape machines "set,time of an answer (s)" '{ print of("set") " (" of("t_from") ")", of("ms") / 1000 }' |
        plot machines.svg --bars set --y "time of an answer (s)" --title "$title" \
            --note "In brackets: whether the time of a step was measured or assumed."
}
