#!/bin/sh
# Make the answers of a real pair that router/results/real keeps, step by step, or make some again.
#
# Usage: sh tools/results.sh real --steps [NAME...]    make the steps that are not done, in order
#        sh tools/results.sh real --dry-run [NAME...]  say what they need and how long they take
#        sh tools/results.sh real --rerun N            make N answers again, and compare them
#
# A NAME may be a pattern ("dev-chat-*"), of which what needs something else is left out, and stands
# for all of its parts. A step ends with what is kept: answers in $RESULTS/real/SET/NAME.csv, or packed,
# and their figures, with the settings and thresholds that they were made with in NAME.jsonl; routers in
# $WEIGHTS; and a line in log.csv, by which it is known to be done, on another machine, too, unless
# its form, split, numbers or widths are others. One that is interrupted, or takes longer than $LIMIT
# minutes, goes on when it is called again: samples and journals are in $REAL until then.
#
# $MIZZLE is the program, $DATA the folder of the authors' files, $EDGE and $CLOUD the models, as -m
# takes them; $CLOUD may be the URL of a server, too. $TEXTS, $QUESTIONS, $REPEATS, $CALIBRATION,
# $ROLLOUTS, $HEADS, $CHOICES, $LABELS, $KEPT and $PARTS replace what stands below, to try it.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -u
cd "$(dirname "$0")/../../.." || exit 1
LC_ALL=C
export LC_ALL
unset MIZZLE_CLOUD_URL
mizzle=${MIZZLE:-build/mizzle}
results=${RESULTS:-router/results}
work=${REAL:-build/real}
data=${DATA:-../shared/data}
weights=${WEIGHTS:-weights/qwen2.5-coder}
edge=${EDGE:-Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF:Q4_K_M}
large=${CLOUD:-Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF:Q4_K_M}
case $large in http*) by=--cloud-url ;; *) by=--cloud-model ;; esac
limit=${LIMIT:-40}
kept=$results/real
here=$work
. tools/results/lib.sh
. tools/results/real/choose.sh
. tools/results/real/joint.sh
. tools/results/real/claim.sh

# The router that is measured at several shares, and another one; the width of each head; which
# heads are kept beside the answers.
primary=${PRIMARY:-mix}
second=mlp
width_mlp=64
width_mix=64
width_combined=32
kept_heads="context combined $primary"
block=16 # questions; as many answers as two threads write at once
kept_sets=${KEPT:-reason gsm8k} # 4 MB in all

# What a set of answers is: a task in one form (plan.md beside the answers). Seconds are those of an
# answer on two cores of a Zen 4: of the small model, the large one, and both with a router.
read_set() { # SET
    set=$1 form='' max=96 rollouts='' trainings=${REPEATS:-5} texts=${TEXTS:-800} whole=1221
    part_answers=1600 target=0.05 calibration=${CALIBRATION:-100} slot='' position=''
    seconds_never=0.1 seconds_always=0.3 seconds=0.2 seconds_search=0.7 collect_minutes=40
    task=csqa test=$data/csqa/dev_rand_split.jsonl source=$data/csqa/train_rand_split.jsonl
    heads='mlp mix combined context query'
    case $set in
    chat)
        target=0.06 position='answer is answer ('
        slot='[Explanation]. Therefore, the answer is answer ('
        ;;
    reason)
        form='--prompt plain@tools/results/real/reason.txt'
        position=' Therefore, the answer is (' slot=$position
        seconds_never=0.2 seconds_always=0.4 seconds=0.3 seconds_search=1 collect_minutes=30
        ;;
    arc)
        task=arc test=$data/arc/ARC-Challenge-Test.jsonl source=$data/arc/ARC-Challenge-Dev.jsonl
        texts=${TEXTS:-193} whole=400 heads="combined $primary" calibration=${CALIBRATION:-50}
        collect_minutes=15 position='answer is answer ('
        slot='[Explanation]. Therefore, the answer is answer ('
        ;;
    gsm8k)
        task=gsm8k test=$data/gsm8k/test.json source=$data/gsm8k/train_mlp.json max=700
        rollouts="--rollouts ${ROLLOUTS:-1200}" trainings=${REPEATS:-3} texts=${TEXTS:-300}
        whole=300
        heads="context combined $primary" calibration=${CALIBRATION:-40}
        seconds_never=2 seconds_always=5 seconds=4 seconds_search=6 collect_minutes=125 part_answers=300
        ;;
    open)
        task=gsm8k test=$open form='--prompt @tools/results/real/open-form.txt' max=256 whole=50
        ;;
    esac
    heads=${HEADS:-$heads} split=$work/split/$task part_of=$task
    [ $set != open ] || part_of=open
    file=${form##*@}
    asks="$task $max $form $(cat ${file:+"$file"} /dev/null)"
    gathers="$asks $texts ${LABELS:-divergent} $rollouts $(cat tools/results/real/split.sh)"
    learns="$gathers $heads $trainings $width_mlp $width_mix $width_combined"
}

# Print a sum of all that a step depends on, by which it is done or not.
sum_of_step() {
    case $step in
    long-*) echo "$depends" ;; # claim.sh
    split-*) cat tools/results/real/split.sh ;;
    collect-*) echo "$gathers" ;;
    loop-*) echo "$learns" ;;
    train-joint) echo "$joins" ;;
    train-*) echo "$learns" ;;
    choose-*) echo "$gathers $choices" ;;
    *)
        case $step_needs in
        *train-joint*) echo "$asks $joins" ;;
        *train*) echo "$learns $calibration" ;;
        *) echo "$asks" ;;
        esac
        ;;
    esac | cksum | cut -d ' ' -f 1
}

# All steps, in order.
plan() {
    for task_set in chat arc gsm8k; do
        read_set $task_set
        step "split-$task" 1 '' "$split/calibration.jsonl" \
            sh tools/results/real/split.sh $task "$source" "$test" "$split"
    done
    for task_set in chat reason arc gsm8k; do
        read_set $task_set
        collects
        step "choose-$set" 1 "collect-$set" '' choose
        trains
        [ $set != reason ] || step loop-reason 15 train-reason '' loop
        measure ends $whole '' never always
        case $set in
        chat | reason)
            measure routers $whole $target context combined primary
            for name in slot position; do measure $name $whole '' $name; done
            measure 400 400 $target entropy max-prob margin random
            measure query 400 $target query
            for share in 02 05 07; do measure second-$share 400 0.$share second.1; done
            [ $set != chat ] || step timed-paper 40 "split-$task train-$set" '' paper_table
            ;;
        arc)
            measure routers $whole $target combined primary
            for name in slot position; do measure $name $whole '' $name; done
            measure 400 400 $target entropy max-prob margin random
            ;;
        gsm8k)
            measure routers $whole $target context random combined primary
            measure max-prob $whole $target max-prob
            ;;
        esac
    done
    plan_joint
    plan_claim
}

collects() {
    samples=$work/$set/samples/$(printf %05d $(((texts - 1) / 16))).safetensors # the last
    ! has_routers || samples='' # which have served them
    step "collect-$set" $collect_minutes "split-$task" "$samples" collect
}

trains() {
    routers=''
    has_routers || routers=$work/$set/none
    step "train-$set" 5 "collect-$set" "$routers" train
}

collect() {
    mkdir -p "$work/$set" || return
    # shellcheck disable=SC2086
    run router collect -q -m "$edge" $by "$large" --task $task $form -n $max \
        --data "$split/train.jsonl" --questions $texts --labels ${LABELS:-divergent} $rollouts \
        -o "$work/$set/samples"
}

train() {
    for head in $heads; do
        width=''
        case $head in
        mlp) width="--width $width_mlp" ;;
        mix) width="--width $width_mix" ;;
        combined) width="--width $width_combined" ;;
        esac
        # shellcheck disable=SC2086
        run router train -q --samples "$work/$set/samples" --head $head $width \
            --repeats $trainings -o "$work/$set/$head.safetensors" >"$work/$set/$head.txt" || return
        case "$kept_sets / $kept_heads " in
        *"$set "*"/"*" $head "*)
            mkdir -p "$weights/$set" && cp "$work/$set/$head.safetensors"* "$weights/$set" || return
            ;;
        esac
    done
}

has_routers() { # true if all trainings of the set are here
    for head in $heads; do
        router=$(router_file $head)
        [ -e "$router" ] || [ -e "$router.$trainings" ] || return 1
    done
}

router_file() { # HEAD: print the path of its trainings, without the number
    for router_at in "$work/$set" "$weights/$set"; do
        ! [ -e "$router_at/$1.safetensors" ] && ! [ -e "$router_at/$1.safetensors.1" ] || break
    done
    echo "$router_at/$1.safetensors"
}

# Print names of policies as --policy takes them: a head with the file of its router; HEAD.1 is the
# first training alone.
policies() { # NAME...
    for policy; do
        case $policy in
        primary*) policy=$primary${policy#primary} ;;
        second*) policy=$second${policy#second} ;;
        esac
        head=${policy%.1} file=''
        [ "$policy" = "$head" ] || [ "${REPEATS:-2}" -eq 1 ] || file=.1
        case $head in
        mix) echo "mlp=$(router_file mix)$file" ;;
        query) # a set without one of its own takes the primary router at the first token
            case " $heads " in *' query '*) ;; *) head=$primary ;; esac
            echo "query=$(router_file "$head")$file"
            ;;
        joint) echo "mlp=$(joint_file)" ;;
        unseen) echo "mlp=$work/joint/without-$task.safetensors" ;;
        joints) echo "mlp=$work/joint/joints.safetensors" ;;
        joint*-combined) echo "combined=$work/joint/$head.safetensors" ;;
        mlp | combined | context) echo "$head=$(router_file $head)$file" ;;
        *) echo "$policy" ;;
        esac
    done | paste -s -d , -
}

# Plan the answers of some policies to the first questions of the set at one share: a step that
# finds the thresholds, if there are any, and one for each part of the questions.
measure() { # NAME QUESTIONS SHARE POLICY...
    name=$1 asked=${QUESTIONS:-$2} share=$3 needs="split-$part_of" repeats=''
    [ "$asked" -le "$2" ] || asked=$2
    [ "$asked" -le $whole ] || asked=$whole
    shift 3
    each=0 answers=0 searches=0 # of one question: seconds, answers; thresholds to find
    for policy; do
        runs=1 searched=0 time=$seconds
        case $policy in
        never) time=$seconds_never ;;
        always) time=$seconds_always ;;
        slot | position | random) ;;
        joints*) runs=$trainings searched=$trainings repeats=$trainings needs="split-$task train-joints" ;;
        joint* | unseen) searched=${share:+1} needs="split-$part_of train-joint" ;;
        entropy | max-prob | margin) searched=1 ;;
        *.1) searched=1 needs="split-$task train-$set" ;;
        *)
            runs=$trainings searched=$trainings repeats=$trainings
            needs="split-$task train-$set"
            ;;
        esac
        each="$each + $runs * $time" answers=$((answers + runs)) searches=$((searches + searched))
    done
    minutes=$(figure '%d' "0.99 + $asked * ($each) / 60")
    items=$kept/$set/$name.csv
    [ "$(unpacked "$items" | grep -c .)" -le $((asked * answers)) ] || complete=1
    parts=${PARTS:-$(((asked * answers + part_answers - 1) / part_answers))}
    if [ $searches -gt 0 ]; then # a search writes an answer again only where it would be another
        search=$(figure '%d' "0.99 + $searches * $calibration * $seconds_search / 60")
        step "thresholds-$set-$name" "$search" "$needs" '' answers 0 $parts "$@"
        needs="$needs thresholds-$set-$name"
    fi
    part=0
    while [ $part -lt $parts ]; do
        part=$((part + 1))
        step "dev-$set-$name$([ $parts -eq 1 ] || echo .$part)" $(((minutes + parts - 1) / parts)) \
            "$needs" '' answers $part $parts "$@"
    done
    complete=''
}

# Write the answers of a part, or, of part 0, find the thresholds. A part is asked in blocks of
# questions, all policies after each other, so that the models read a question once. Each block
# begins with a journal that has the settings and the thresholds alone.
answers() { # PART PARTS POLICY...
    part=$1 parts=$2
    shift 2
    count=$(((asked + parts - 1) / parts))
    first=$(((part - 1) * count))
    last=$((first + count))
    [ $last -le "$asked" ] || last=$asked
    [ "$part" -gt 0 ] || first=0 last=1
    mkdir -p "$work/$set/$name" "$kept/$set" || return
    known=$kept/$set/$name.jsonl
    while [ $first -lt $last ]; do
        count=$((last - first < block ? last - first : block))
        asked_block=$work/$set/$name/$first-$count journal=$work/$set/$name/$first-$count.jsonl
        if ! [ -e "$asked_block.csv" ]; then
            [ -s "$journal" ] || [ ! -e "$known" ] || begin_journal "$known" $first $count "$@" >"$journal" || return
            ask $first $count "$journal" "$asked_block.new" "$@" || return
            sed -n '1p; /^{"calibrated"/p' "$journal" >"$known.new" && mv "$known.new" "$known" || return
            mv "$asked_block.new" "$asked_block.csv"
        fi
        [ "$part" -eq 0 ] || keep_items "$asked_block.csv" || return
        first=$((first + count))
    done
}

# Time the columns of the paper's Table 1, at its thresholds, on a machine that does nothing else:
# each call awaited as there, and decoding ahead.
paper_table() {
    for ahead in 0 1; do
        table=$work/table.$ahead
        [ ! -s "$table" ] || continue
        # shellcheck disable=SC2086
        run eval -q -m "$edge" $by "$large" --task "$task" -n "$max" --data "$test" \
            --questions "${QUESTIONS:-100}" --parallel 1 --ahead $ahead --as-paper \
            --policy "$(policies second.1)" $form >"$table.new" && mv "$table.new" "$table" || return
    done
    awk -v date="$(today)" -v processor="$(processor)" -v OFS=, '
        BEGIN { print "date,processor,ahead,threshold,routed,edge_s,ttft_s,tbt_s,cloud_s,overall_s" }
        FNR == 1 { ahead = FILENAME; sub(/.*[.]/, "", ahead) }
        $1 ~ /^mlp/ { print date, processor, ahead, $2, $3, $4, $5, $6, $7, $8 }' \
        "$work/table.0" "$work/table.1" >"$kept/paper.measured.csv"
}

keep_items() { # FILE
    items=$kept/$set/$name.csv
    { unpacked "$items" && cat "$1"; } | awk '!known[$0]++' >"$items.new" || return
    mv "$items.new" "$items"
}

# Begin the journal of a part from what is kept, in which names are those of this place, version and
# machine: the fingerprints and digests decide.
begin_journal() { # FILE FIRST COUNT POLICY...
    begin_from=$1 begin_first=$2 begin_count=$3 version=$("$mizzle" --version) cloud_name=${large##*/}
    shift 3
    "$python" -B tools/lab/study/answers.py begin "$begin_from" "$begin_first" "$begin_count" \
        "${version#* }" "${cloud_name%.gguf}" "$(list_of "$@")"
}

list_of() { # POLICY...: print them as --policy takes them, each training by itself
    list=$(policies "$@")
    case $list in
    slot) list="slot=$slot" ;;
    position) list="position=$position" ;;
    *) list=$(trainings_of "${repeats:-1}" "$list") ;;
    esac
    echo "$list"
}

ask() { # FIRST COUNT JOURNAL ITEMS POLICY...
    ask_first=$1 ask_count=$2 ask_journal=$3 ask_items=$4
    shift 4
    [ -z "$share" ] || head -n "$calibration" "$split/calibration.jsonl" >"$split/calibrated.jsonl" ||
        return
    set -- eval -q -m "$edge" $by "$large" --task "$task" -n "$max" --data "$test" \
        --questions "$asked" --first "$ask_first:$ask_count" --policy "$(list_of "$@")" \
        --jsonl "$ask_journal"
    [ -z "$share" ] || set -- "$@" --target-routed "$share" --calibration "$split/calibrated.jsonl"
    # shellcheck disable=SC2086
    run "$@" $form && items_of "$ask_journal" >"$ask_items"
}

# Run the program for as long as the step may take, and note the command.
run() { # ARGS...
    echo "mizzle $*" >>"$work/commands"
    left=$((begun + 60 * limit - $(date +%s)))
    [ $left -gt 0 ] || left=1
    if command -v timeout >/dev/null; then
        timeout --foreground -s INT $left "$mizzle" "$@"
    else
        "$mizzle" "$@"
    fi
}

is_logged() { # STEP: true if it is done, or all of its answers are there, in other parts
    grep -qsE "^[^,]*,(${complete:+${1%.*}([.][0-9]+)?|}$1),$(sum_of_step)," "$kept/log.csv"
}
chosen() { # STEP: true if it is one of those that are named
    [ -n "$names" ] || return 0
    set -f # a pattern is not for files
    for pattern in $names; do
        set +f
        # shellcheck disable=SC2254
        case $1 in $pattern | $pattern.[0-9]*) return 0 ;; esac
    done
    return 1
}

list_step() { all_steps="$all_steps $step"; }

# Refuse names that no step has.
check_names() {
    mode=list_step all_steps='' chosen_names=$names
    plan
    set -f
    for names in $chosen_names; do
        for step in $all_steps; do
            ! chosen "$step" || continue 2
        done
        echo "real: no such step: $names (--dry-run names all)" >&2 && exit 2
    done
}

# Each step goes through here, in what is being done: $mode.
step() { # NAME MINUTES NEEDS FILE COMMAND...: FILE, if any, must be there for it to be done
    step=$1 step_minutes=$2 step_needs=$3 step_file=$4
    shift 4
    missing=''
    for need in $step_needs; do
        case " $done_steps " in *" $need "*) ;; *) missing="$missing $need" ;; esac
    done
    case $step in
    split-open) ;;
    split-*) [ -e "$source" ] && [ -e "$test" ] || missing="$missing $source $test" ;;
    esac
    if is_logged "$step" && { [ -z "$step_file" ] || [ -e "$step_file" ]; }; then
        done_steps="$done_steps $step" state="done"
    else
        state=${missing:+needs$missing}
    fi
    "$mode" "$@"
}

say() { # for --dry-run
    chosen "$step" || return 0
    printf '%-28s %4d min  %s\n' "$step" "$step_minutes" "${state:-ready}"
    [ "$state" = "done" ] || total=$((total + step_minutes))
}

make_step() { # COMMAND...
    chosen "$step" && [ "$state" != "done" ] || return 0
    if [ -n "$missing" ]; then
        echo "real: $step needs$missing" >&2
        case " $names " in '  ' | *" $step "*) exit 1 ;; esac
        left_out=1 && return # one of those that a pattern stands for
    fi
    made=1 begun=$(date +%s)
    echo "real: $step, about $step_minutes minutes"
    mkdir -p "$work" "$kept" && : >"$work/commands" || exit 1
    "$@"
    status=$?
    [ -s "$work/commands" ] || echo "$*" >"$work/commands"
    spent=$(($(date +%s) - begun + $(cat "$work/$step.seconds" 2>/dev/null || echo 0)))
    if [ $status -ne 0 ]; then
        echo $spent >"$work/$step.seconds"
        echo "real: $step: status $status after $spent s; the same command continues" >&2
        exit $status
    fi
    rm -f "$work/$step.seconds"
    [ -e "$kept/log.csv" ] || echo date,step,sum,version,processor,seconds,command >"$kept/log.csv"
    command=$(paste -s -d ';' "$work/commands" | tr '"' "'")
    version="$("$mizzle" --version) $(git rev-parse --short HEAD 2>/dev/null)"
    echo "$(today),$step,$(sum_of_step),${version% },$(processor),$spent,\"$command\"" | short_log >>"$kept/log.csv"
    done_steps="$done_steps $step"
    numpy || return 0 # the figures are for a machine that has it
    case $step in dev-*) sh tools/results.sh real >"$work/figures.log" || exit ;; esac
}

# For --rerun: note where the answers are that can be made again here.
note_answers() { # answers PART PARTS POLICY...
    [ "$1" = answers ] && [ "$2" -eq 1 ] || return 0
    shift 3
    items=$kept/$set/$name.csv
    is_kept "$items" && [ -e "$kept/$set/$name.jsonl" ] && [ -e "$test" ] &&
        [ -e "$split/calibration.jsonl" ] || return 0
    for file in $(policies "$@" | tr , '\n' | sed -n 's/.*=//p'); do
        [ -e "$file" ] || [ -e "$file.1" ] || return 0
    done
    unpacked "$items" | sed "1d; s/^/$set-$name /" >>"$work/remakable"
}

# Make the answers of a policy to a drawn question again, as its step has made them, and look for
# the drawn line among them.
make_again() { # answers PART PARTS POLICY...
    [ "$1" = answers ] && [ "$2" -eq 1 ] || return 0
    shift 3
    sed -n "s/^$set-$name //p" "$work/drawn" >"$work/drawn.here"
    while read -r line; do
        id=$(echo "$line" | cut -d , -f 4)
        case $id in
        *[!0-9]*) at=$(grep -nF "\"$id\"" "$test" | cut -d : -f 1) ;;
        *) at=$((id + 1)) ;; # the number of an item without a name
        esac
        rm -f "$work/again.csv"
        begun=$(date +%s)
        begin_journal "$kept/$set/$name.jsonl" $((at - 1)) 1 "$@" >"$work/again.jsonl" || exit
        ask $((at - 1)) 1 "$work/again.jsonl" "$work/again.csv" "$@" >/dev/null </dev/null || exit
        if grep -qxF "$line" "$work/again.csv"; then
            echo "same     $set-$name: $line"
        else
            echo "DIFFERS  $set-$name: $line, found $(grep ",$id," "$work/again.csv" | tr '\n' ' ')"
            : >"$work/differs"
        fi
    done <"$work/drawn.here"
}

rerun() { # N
    case $1 in *[!0-9]*) echo "real: --rerun: expected a number, found $1" >&2 && exit 2 ;; esac
    for model in "$edge" "$large"; do
        case $model in http*) continue ;; esac
        "$mizzle" tokenize -m "$model" </dev/null >/dev/null ||
            { echo "SKIP: no $model (\$EDGE and \$CLOUD name the models)" && exit 77; }
    done
    mkdir -p "$work" && : >"$work/remakable" && rm -f "$work/differs" || exit 1
    for mode in split_again note_answers; do plan; done
    seed=${SEED:-$(date +%s)}
    awk -v seed="$seed" 'BEGIN { srand(seed) } { print rand(), $0 }' "$work/remakable" | sort -n |
        head -n "$1" | cut -d ' ' -f 2- >"$work/drawn"
    [ -s "$work/drawn" ] || {
        echo "SKIP: no answers whose routers and data are here (\$DATA names the authors' files: $data)"
        exit 77
    }
    echo "drawn with SEED=$seed: $(wc -l <"$work/drawn") of $(wc -l <"$work/remakable") answers"
    mode=make_again
    plan
    [ ! -e "$work/differs" ]
}

split_again() { # COMMAND...: for --rerun, if the splits are not here
    case $step in split-*) [ -e "$step_file" ] || [ ! -e "$test" ] || "$@" ;; esac
}

names='' done_steps='' complete=''
case ${1:-} in
--steps) mode=make_step ;;
--dry-run) mode=say ;;
--rerun)
    rerun "${2:-10}"
    exit
    ;;
*) sed -n '4,6s/^#//p' "$0" >&2 && exit 2 ;;
esac
shift
case " $* " in *' -'*) echo "real: expected names of steps behind the option, found $*" >&2 && exit 2 ;; esac
names=$*
total=0 made='' left_out=''
(check_names) || exit
plan
[ -z "$left_out" ] || [ -n "$made" ] || exit 1
[ $mode != say ] || echo "$(figure %.1f "$total / 60") hours in all of what is not done"
