#!/bin/sh
# Make the paper's experiment (She et al., arXiv 2504.07878) with a pair of one's own: its Table 1,
# accuracy and share by threshold, the sweep of sizes, and routers beside other ways to divide an
# answer, all with intervals, in one page without a network.
#
# Usage: sh tools/lab/paper.sh [--dry-run] [--questions N] [--repeats N] EDGE[,EDGE...] CLOUD DATA OUT
#
# EDGE and CLOUD are models as -m takes them, or ORG/NAME[:TYPE] to be fetched by tools/download.sh;
# CLOUD may be the URL of a server. Further EDGEs are more sizes; a single one is one size. DATA is
# dev_rand_split.jsonl of CommonsenseQA, with train_rand_split.jsonl beside it (or $TRAIN) to learn
# from, or a file like it that is split by concept, or weights/milli/questions.jsonl for the demo
# pair. N questions are measured (default: 100, as in the paper); no concept of theirs trains or
# calibrates. With --repeats N each router is trained N times (default: 1), and rows are means with
# intervals over trainings, too; Table 1 takes the first training.
#
# OUT gets report.html and claims.csv, and what they are made from. Interrupted, the same command
# goes on, and ends with the same bytes but for tokens per second, a measurement of this machine
# (speed.csv, and a line of the page). --dry-run prints the steps, with times estimated from four
# questions. $MIZZLE is the program. Exit status: 2 for wrong usage, else that of the step that failed.
set -u
LC_ALL=C
export LC_ALL
unset MIZZLE_CLOUD_URL
root=$(dirname "$0")/../..
mizzle=${MIZZLE:-$root/build/mizzle}
. "$root/tools/results/lib.sh"

refuse() { echo "paper: $1" >&2 && exit 2; }

questions=100 repeats=1 dry='' names='' train=${TRAIN:-}
while [ $# -gt 0 ]; do
    case $1 in
    --dry-run) dry=1 ;;
    --questions | --repeats)
        case $1 in --q*) questions=${2:-} ;; *) repeats=${2:-} ;; esac
        [ $# -lt 2 ] || shift
        ;;
    -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;;
    -*) refuse "expected --dry-run, --questions N or --repeats N, found $1" ;;
    *[!A-Za-z0-9_./:@%~+,-]*) refuse "expected names without blanks and quotation marks, found $1" ;;
    *) names="$names $1" ;;
    esac
    shift
done
# shellcheck disable=SC2086
set -- $names
[ $# -eq 4 ] || refuse "expected EDGE CLOUD DATA OUT, found $# of these"
case $questions,${#questions} in
,* | 0* | *[!0-9,]* | *,[6-9] | *,??*) refuse "--questions: expected 1 to 99999, found '$questions'" ;;
esac
case $repeats in [1-9] | [1-5][0-9] | 6[0-4]) ;; *) refuse "--repeats: expected 1 to 64, found '$repeats'" ;; esac
# Files end with .1 to .N.
first='' last='' several=''
[ "$repeats" -eq 1 ] || first=.1 last=.$repeats several="--repeats $repeats"
case $2$3$4$train in *[!A-Za-z0-9_./:@%~+-]*) refuse "expected commas in EDGE alone, and no blanks, found $2 $3 $4 $train" ;; esac
"$python" -c "import numpy, matplotlib" 2>/dev/null || refuse "no numpy or matplotlib for $python: sh tools/setup.sh lab"
[ -x "$mizzle" ] || refuse "no program $mizzle: make it first"
case $1 in ,* | *, | *,,*) refuse "EDGE: expected names between commas, found $1" ;; esac
[ -n "${4%/}" ] || refuse "OUT: expected a folder of its own, found $4"
edges=$(echo "$1" | tr -s , ' ') edge=${1%%,*} large=$2 data=$3 out=${4%/}
results=$out dir=$out

# What is asked; an answer of the paper has at most 100 tokens. Variables that are not quoted below
# hold several options.
if [ ! -f "$data" ] || [ ! -r "$data" ]; then refuse "DATA: cannot read $data"; fi
measured=$data texts=$((questions < 12 ? 48 : questions < 200 ? 4 * questions : 800))
if cmp -s "$data" "$root/weights/milli/questions.jsonl"; then
    train='' task='--task milli -n 100' ask='' aside='' # whose streams of questions share nothing
    learn="--questions $texts" calibrated=$((4 * questions < 4000 ? 4 * questions : 4000))
elif head -n 1 "$data" | grep -q '"question_concept"'; then
    [ "$questions" -le "$(grep -c . "$data")" ] ||
        refuse "--questions: expected at most the $(grep -c . "$data") of $data, found $questions"
    [ -z "$train" ] || [ -r "$train" ] || refuse "TRAIN: cannot read $train"
    [ -n "$train" ] || train=$(dirname "$data")/train_rand_split.jsonl
    if [ ! -r "$train" ]; then train=$data measured=$out/split/measured.jsonl; fi
    calibrated=$((questions / 2 > 100 ? 100 : questions / 2 + (questions < 2)))
    task='--task csqa -n 100' ask="--data $measured" aside="--calibration $out/split/calibrated.jsonl"
    learn="--data $out/split/learned.jsonl"
else
    refuse "DATA: expected lines of CommonsenseQA, with a question_concept, or the demo's questions.jsonl, found $data"
fi
ask="${ask:+$ask }--questions $questions"

fingerprint() { "$mizzle" info "$1" 2>/dev/null | sed -n 's/^fingerprint *//p'; }

model() { # ROLE NAME: print the model's fingerprint; a model that is only named is fetched first
    found=$(fingerprint "$2")
    if [ -z "$found" ] && [ ! -e "$2" ] && echo "$2" | grep -qE '^[^./][^/]*/[^/]+$' && [ "$2" = "${2%.gguf}" ]; then
        [ -z "$dry" ] || refuse "$1: not here yet: sh tools/download.sh $2"
        sh "$root/tools/download.sh" "$2" >&2 || exit
        found=$(fingerprint "$2")
    fi
    [ -n "$found" ] || refuse "$1: $("$mizzle" info "$2" 2>&1 >/dev/null | tail -n 1)"
    echo "$1 $found"
}

sum() { cksum <"$1" | cut -d ' ' -f 1; }

settings() { # print what the files of OUT depend on
    "$mizzle" --version
    for small in $edges; do model EDGE "$small" || return; done
    case $large in
    http://* | https://*) # and what the server says of the model
        said=$("$mizzle" cloud --check "$large") || return
        echo "CLOUD $large" "$(echo "$said" | sed -n '1s/.*, \(model .*\), token ids .*/\1/p; s/^  weights *//p' | paste -s -d ' ' -)"
        ;;
    *) model CLOUD "$large" || return ;;
    esac
    echo "DATA $(sum "$data")"
    [ -z "$train" ] || echo "TRAIN $(sum "$train")"
    echo "--questions $questions${several:+ $several}"
}
case $large in http://* | https://*) by=--cloud-url ;; *) by=--cloud-model ;; esac

[ ! -e "$out" ] || [ -d "$out" ] || refuse "OUT: expected a folder, found the file $out"
wanted=$(settings) || exit
parameters() { "$mizzle" info "$1" 2>/dev/null | sed -n 's/^parameters *//p'; } # MODEL
[ $by = --cloud-url ] || [ "$(parameters "$edge")" -lt "$(parameters "$large")" ] ||
    echo "paper: EDGE has $(parameters "$edge") parameters, CLOUD $(parameters "$large"): are they swapped?" >&2
if [ -e "$out/settings" ]; then
    differs=$(echo "$wanted" | awk 'FILENAME == ARGV[1] { had[n = FNR] = $0; next } had[FNR] != $0 { new = $0; at = FNR; exit }
        END { if (at || FNR < n) print "expected " (at ? had[at] : had[FNR + 1]) ", found " new }' "$out/settings" -)
    [ -z "$differs" ] || refuse "OUT: $out was begun with other settings: $differs"
elif [ -d "$out" ] && ls -A "$out" | grep -vqx 'settings\.part'; then
    refuse "OUT: expected an empty folder or one of this command, found $out"
fi

child=''
trap 'trap "" HUP INT TERM; [ -z "$child" ] || { kill $child 2>/dev/null; wait $child; }; exit 130' HUP INT TERM
run() { # ARGS...: run the program so that a signal ends it at once, in order
    "$mizzle" "$@" &
    child=$!
    echo $child >"$out/running"
    wait $child
    status=$?
    child=''
    rm -f "$out/running"
    return $status
}

constants() { (results=$root/router/results && constant "$1"); } # NAME: a figure of the paper's devices
edge_ms=$(constants paper_edge_ms) latency=$(constants paper_latency_ms) cloud_ms=$(constants paper_cloud_ms)

report() { # the page and claims, from the tables (study/paper.py)
    learned=$texts
    [ -z "$train" ] || { learned=$(grep -c . "$out/split/learned.jsonl") && calibrated=$(grep -c . "$out/split/calibrated.jsonl"); }
    with_numpy paper.py report "$out" edges="$edges" by=$by large="$large" data="$data" task="$task" ask="$ask" aside="$aside" \
        questions="$questions" repeats="$repeats" learned="$learned" calibrated="$calibrated" edge_ms="$edge_ms" \
        call_ms=$((latency + cloud_ms)) version="$("$mizzle" --version)" \
        command="${TRAIN:+TRAIN=$TRAIN }sh tools/lab/paper.sh --questions $questions${several:+ $several} $(echo "$edges" | tr ' ' ,) $large $data $out"
}

keep() { # NAME COLUMNS: keep these columns of a table of eval
    { echo "$2" && columns "$2" <"$out/$1.new"; } >"$out/$1.part" &&
        mv "$out/$1.part" "$out/$1.csv" && rm "$out/$1.new"
}

questions_of_own() { # split the file: what is measured, what trains and what calibrates
    mkdir -p "$out/split" || return
    [ "$measured" = "$data" ] || head -n "$questions" "$data" >"$measured" || return
    # Its status says that there are fewer than the measurement of the real pair takes.
    sh "$root/tools/results/real/split.sh" csqa "$train" "$measured" "$out/split" 2>"$out/split/said"
    [ -s "$out/split/train.jsonl" ] && [ -s "$out/split/calibration.jsonl" ] ||
        { tail -n 1 "$out/split/said" >&2 && return 1; }
    head -n "$texts" "$out/split/train.jsonl" >"$out/split/learned.jsonl" &&
        head -n "$calibrated" "$out/split/calibration.jsonl" >"$out/split/new" &&
        mv "$out/split/new" "$out/split/calibrated.jsonl"
}

collect() { # EDGE FOLDER
    mkdir -p "$2" || return
    # shellcheck disable=SC2086
    run router collect -q -m "$1" $by "$large" $task $learn --labels divergent -o "$2/samples" \
        >/dev/null && : >"$2/collected"
}

# Few texts may hold out no wrong token, or, for query, no wrong answer: then other ones are held out.
# Without a query, the rest goes on.
train() { # FOLDER HEAD...
    from=$1
    shift
    for head; do
        seed=0 status=2
        while [ ! -e "$from/$head$last" ] && [ $seed -lt 5 ] && [ $status -eq 2 ]; do
            seed=$((seed + 1))
            # shellcheck disable=SC2086
            run router train -q --samples "$from/samples" --head "$head" --seed $seed $several -o "$from/$head" >/dev/null
            [ $status -ne 2 ] || echo "paper: $head: other texts are held out, $seed of 5 times" >&2
        done
        [ -e "$from/$head$last" ] || { [ "$head" = query ] && [ $status -eq 2 ]; } || return $status
    done
}

paper_table() { # the columns of Table 1, each call awaited as there
    # shellcheck disable=SC2086
    run eval -q -m "$edge" $by "$large" $task $ask --ahead 0 --as-paper --policy "mlp=$out/1/mlp$first" \
        --jsonl "$out/table.jsonl" >/dev/null &&
        with_numpy paper.py table "$edge_ms" $((latency + cloud_ms)) "$out/table.jsonl" >"$out/table.csv" &&
        with_numpy table.py "$out/table.jsonl" >"$out/thresholds.new" &&
        keep thresholds threshold,routed,accuracy,accuracy_low,accuracy_high
}

figures=policy,router,target,routed,accuracy,accuracy_low,accuracy_high,relative_gain,relative_gain_low,relative_gain_high,pgr,pgr_low,pgr_high
ways() {
    query=''
    [ ! -e "$out/1/query$last" ] || query=query=$out/1/query,
    # shellcheck disable=SC2086
    ends=never,always,
    for share in 0.02 0.06 0.1; do
        run eval -q -m "$edge" $by "$large" $task $ask $aside --target-routed $share \
            --policy "$(trainings_of "$repeats" "${ends}mlp=$out/1/mlp,mlp=$out/1/mix,combined=$out/1/combined,context=$out/1/context,${query}entropy,random")" \
            --jsonl "$out/ways-$share.jsonl" >/dev/null || return
        ends=''
    done
    with_numpy table.py --against mlp=mlp "$out/ways-0.02.jsonl" "$out/ways-0.06.jsonl" "$out/ways-0.1.jsonl" >"$out/ways.new" &&
        keep ways $figures,equal_share,equal_share_low,equal_share_high,calls_answer,cloud_answer,edge_answer,work
}

size() { # EDGE NUMBER
    # shellcheck disable=SC2086
    run eval -q -m "$1" $by "$large" $task $ask $aside --target-routed 0.06 --jsonl "$out/$2/size.jsonl" \
        --policy "$(trainings_of "$repeats" "never,always,mlp=$out/$2/mlp")" >/dev/null &&
        with_numpy table.py "$out/$2/size.jsonl" >"$out/$2/size.new" && keep "$2/size" $figures
}

speed() { # tokens per second: the median of six samples, the lowest and the highest
    run bench model -m "$edge" -p 0 -n 16 -r 6 -o json >"$out/speed.json" || return
    sed -n 's/.*"samples_ts": \[\([^]]*\)\].*/\1/p' "$out/speed.json" | tr -d ' ' | tr , '\n' | sort -n >"$out/speed.part"
    doubt=$(sed -n 's/.*"doubtful": "\([^"]*\)".*/\1/p' "$out/speed.json" | tr , ';')
    awk -v OFS=, -v date="$(today)" -v processor="$(processor)" -v doubt="$doubt" '
        { sample[NR] = $1 }
        END {
            print "date,processor,tokens_s,low,high,doubtful"
            print date, processor, sprintf("%.1f,%.1f,%.1f", (sample[3] + sample[4]) / 2, sample[1], sample[6]), doubt
            exit NR != 6
        }' "$out/speed.part" >"$out/speed.new" && rm "$out/speed.part" && mv "$out/speed.new" "$out/speed.csv"
}

# A step is done when its file is there. Seconds are for a dry run, in which pair is the time of a
# question's answers by each model alone. With Qwen2.5's 0.5B and 1.5B in chat, a text of the
# collection takes 2.5 of it, a routed answer a half (log.csv of router/results/real), one that
# calibrates a threshold, of which ways has 21, 1, and one of Table 1's eight rows, alone, 0.75 (by
# processor time, of eight questions).
total=0
step() { # NAME FILE SECONDS COMMAND...
    step=$1 file=$out/$2 seconds=$3
    shift 3
    if [ -n "$dry" ]; then
        state=ready
        if [ -e "$file" ]; then state="done" seconds=0; fi
        total="$total + $seconds"
        printf '%-12s %7.1f min  %s\n' "$step" "$(figure %.3f "($seconds) / 60")" $state
        return
    fi
    [ ! -e "$file" ] || return 0
    echo "paper: $step"
    "$@" || {
        status=$?
        goes_on='; the same command goes on'
        case $status in 2 | 3) goes_on='' ;; esac # it would fail again
        echo "paper: $step: status $status$goes_on" >&2
        exit $status
    }
}

probe() { # print the seconds that the answers of both models to a question take
    # shellcheck disable=SC2086
    rows=$("$mizzle" eval -q -m "$edge" $by "$large" $task ${train:+--data "$data"} \
        --questions $((questions < 4 ? questions : 4)) --policy never,always --json </dev/null) || return
    echo "$rows" | sed -n 's/.*"ms":\([0-9.]*\).*/\1/p' | awk '{ ms += $1 } END { print ms / 1000 }'
}

if [ -n "$dry" ]; then
    pair=$(probe) || exit
    echo "EDGE and CLOUD alone take $(figure %.3f "$pair") s for a question, as busy as this machine is now"
else
    pair=0
    mkdir -p "$out" || exit 2
    [ -e "$out/settings" ] || { echo "$wanted" >"$out/settings.part" && mv "$out/settings.part" "$out/settings"; } || exit 2
    exec 9<"$out/settings" || exit 2
    ! command -v flock >/dev/null || flock -n 9 || # what a killed one has begun keeps the lock
        refuse "OUT: another paper.sh writes to $out$(sed 's/^/, as process /' "$out/running" 2>/dev/null)"
fi

[ -z "$train" ] || step split split/calibrated.jsonl 1 questions_of_own
number=0
for small in $edges; do
    number=$((number + 1)) heads=mlp
    step "collect-$number" "$number/collected" "$texts * 2.5 * $pair" collect "$small" "$out/$number"
    [ $number -gt 1 ] || heads='query context combined mix mlp'
    # shellcheck disable=SC2086
    step "train-$number" "$number/mlp$last" "$(echo "$heads" | wc -w) * $repeats * $texts / 40" train "$out/$number" $heads
    [ $number -eq 1 ] ||
        step "size-$number" "$number/size.csv" "($questions * (1 + 0.5 * $repeats) + $calibrated * $repeats) * $pair" size "$small" $number
done
step table thresholds.csv "$questions * 7 * $pair" paper_table
step ways ways.csv "($questions * (6.5 + 7.5 * $repeats) + $calibrated * (6 + 15 * $repeats)) * $pair" ways
step speed speed.csv 5 speed
step report report.new 2 report # which is always made again
if [ -n "$dry" ]; then
    echo "$(figure %.1f "($total) / 60") minutes in all of what is not done"
else
    echo "paper: $out/report.html and $out/claims.csv"
fi
