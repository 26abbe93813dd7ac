# shellcheck shell=sh disable=SC2034,SC2154
# claim.sh - steps of the real pair: the fourth plan (plan.md beside the answers). Their names begin
# with long-: CommonsenseQA in the chosen form first, then in form reason, then GSM8K. They keep in
# real/claim: answers of a set in SET/NAME.csv, their settings and thresholds in SET/NAME.jsonl, both
# of the calibration questions in SET/loop-NAME, and the thresholds that these give in SET/aim-*; the
# labels of samples without their hidden states in SET/*.tar.xz. curve.csv is beside forms.csv, and so
# is explore.csv, whose step left with the states of earlier layers; routers are in $WEIGHTS/long. So
# another machine goes on where one has ended.
#
# $FORM is a wording of forms/ until forms.csv names the chosen one. $SEED is the first one of all
# trainings (1). $SLICES are numbers of texts: samples up to each have a folder. $WIDTH, $WIDTH_NONE
# and $TEXTS_2 replace what stands below. Where a router is made anew, what is
# kept of its answers has to go first: eval refuses to go on with another one.
tap=final # the state that routers read
width_gain=${WIDTH:-64}
texts_2=${TEXTS_2:-400} # of round 2
width_none=${WIDTH_NONE:-64}
claim_form=${FORM:-$(awk -F, '$NF == 1 && NR > 1 { print $1 }' "$kept/forms.csv" 2>/dev/null)}

# Seconds are those of an answer, or of a text of samples, on two cores of a Zen 3.
read_claim() { # SET: long and dev (the chosen form), reason, gsm8k
    share=''
    case $1 in
    gsm8k)
        read_set gsm8k
        rollouts="--rollouts ${ROLLOUTS:-3000}" slices=${SLICES:-60 120 180 240 300} few=${REPEATS:-3} many=$few
        calibration=${CALIBRATION:-100} claim_needs=split-gsm8k seconds_text=40
        seconds_never=4 seconds_always=10 seconds=8
        ;;
    *)
        read_set reason
        slices=${SLICES:-200 400 800 1200 1600 1900} texts=${TEXTS:-1900} few=${REPEATS:-3}
        many=${REPEATS:-5} calibration=${CALIBRATION:-400} claim_needs=long-split seconds_text=5
        split=$work/split/claim test=$work/split/claim/measure.jsonl whole=1802
        seconds_never=0.4 seconds_always=0.9 seconds=0.7
        [ "$1" = reason ] || {
            form="--prompt plain@tools/results/real/forms/${claim_form:-CHOSEN}.txt" max=160
            seconds_never=0.7 seconds_always=1.6 seconds=1.2
            [ -n "$claim_form" ] || claim_needs="$claim_needs a-chosen-form"
        }
        [ "$1" != dev ] || test=$data/csqa/dev_rand_split.jsonl whole=1221
        ;;
    esac
    set=claim/$1 target=0.06 prefix=long-$1 learnt=$work/claim/long taught=$weights/long learner=long
    learners='first gain-ens gain-none-ens divergent-ens combined-ens context'
    [ "$1" != long ] || prefix=long
    [ "$1" != gsm8k ] || learnt=$work/claim/gsm8k taught=$weights/gsm8k learner=long-gsm8k learners='gain gain-ens'
    aims=$kept/$set aimer=$prefix # where the thresholds are
    [ "$1" != dev ] || aims=$kept/claim/long aimer=long
    file=${form##*@}
    asks="$task $max $form $(cat ${file:+"$file"} /dev/null 2>/dev/null) $(cat tools/results/real/parts.sh)"
}

plan_claim() {
    read_claim long
    depends=$(cat tools/results/real/parts.sh)
    step long-split 1 '' "$split/measure.jsonl" sh tools/results/real/parts.sh "$source" \
        "$data/csqa/dev_rand_split.jsonl" "$data/csqa/touched.txt" "$split"
    gathers gain-1 "$claim_needs" gain
    needed=''
    for count in $slices; do
        [ "$count" -le "$texts" ] || continue
        needed="$needed long-gain-1-$count"
        [ "$count" -ne 1200 ] || continue # no point of the plan
        depends="$asks $count $slices $tap $width_gain $width_none $few"
        minutes_of $((2 * 2 * 200)) $seconds
        step "long-curve-$count" $((minutes + 5)) "$needed" '' curve "$count"
    done
    claim_arms gain gain-none divergent combined context
    depends=joints
    step long-train-joints 1 '' "$taught/joints.safetensors" cp "$(joint_file)" "$taught/joints.safetensors"
    arm joints 1 500
    arm max-prob 1 500
    alone random 500 $target
    alone slot 500 ''
    for arm in gain-ens gain-none-ens max-prob; do
        for at in 0.02 0.035 0.05 0.08 0.1; do asked_at at-$at-$arm 1 500 $at $arm; done
    done
    read_claim dev
    alone ends $whole ''
    for arm in gain-ens gain-none-ens; do asked_at $arm 1 $whole $target $arm; done
    read_claim reason
    for arm in ends position; do alone $arm $whole ''; done
    for arm in joints gain-ens gain-none-ens; do arm $arm 1 $whole; done
    read_claim gsm8k
    gathers gain-1 "$claim_needs" gain
    claim_arms gain combined
    alone random $whole $target
}

# Plan what is learnt from the samples, and the answers of the trainings and of what learns nothing.
# GSM8K has one round, and the combined that is kept (weights/).
claim_arms() { # NAME...
    round_1=$gathered_steps round_2='' labelled=gain-1 other=''
    if [ $prefix = long ]; then
        learns first gain gain-1 $width_gain '' $many "$round_1"
        policy=$(reads first "$taught/first.safetensors") repeats=''
        minutes_of $calibration $seconds
        step long-scores-first "$minutes" "$claim_needs long-train-first" '' score first
        every=$texts
        [ "$texts" -le "$texts_2" ] || texts=$texts_2
        gathers gain-2 "$round_1 long-scores-first" gain
        texts=$every
        round_2=$gathered_steps labelled="gain-1 gain-2"
        gathers divergent "$claim_needs" divergent
        other=$gathered_steps
    fi
    for arm in ends position; do alone $arm $whole ''; done
    for arm; do
        head=$arm from=$labelled width=$width_gain runs=$many sources="$round_1 $round_2"
        case $arm in
        divergent) head=mix from=divergent runs=$few sources=$other ;;
        combined) width=$width_combined ;;
        gain-none) width=$width_none ;;
        esac
        case $prefix,$arm in
        long-gsm8k,combined)
            depends=kept
            step $prefix-train-combined 1 '' "$taught/combined.safetensors.1" true
            continue
            ;;
        long,context) # a table has no members
            learns context context "$from" '' '' '' "$sources"
            arm context 1 $whole
            continue
            ;;
        long-gsm8k,*) learns $arm $head "$from" "$width" $runs '' "$sources" ;;
        esac
        learns $arm-ens $head "$from" "$width" '' $runs "$sources"
        arm $arm-ens 1 $whole
    done
    [ $prefix != long ] || return 0
    for arm; do arm $arm $few $whole; done # single trainings
}

reads() { # NAME FILE: print the policy that reads the router of this name
    case $1 in
    gain-none* | combined*) echo "combined=$2" ;;
    context) echo "context=$2" ;;
    *) echo "mlp=$2" ;;
    esac
}

minutes_of() { minutes=$(figure '%d' "0.99 + $1 * $2 / 60"); } # ANSWERS SECONDS

# Plan samples, a folder for each slice of the texts; gathered_steps are the steps.
gathers() { # KIND NEEDS LABELS
    first=0 gathered_steps=''
    for last in $slices; do
        [ "$last" -le "$texts" ] || last=$texts
        [ $first -lt "$last" ] || break
        depends="$asks $1 $first $last $3 $tap $rollouts"
        [ "$1" != gain-2 ] || depends="$depends $width_gain $many"
        minutes_of $((last - first)) $seconds_text
        file=$learnt/$1-$last.done
        ! has_learnt || file='' # its routers are here
        step "$prefix-$1-$last" "$minutes" "$2" "$file" \
            gather "$1" $first "$last" "$3"
        gathered_steps="$gathered_steps $prefix-$1-$last" first=$last
    done
}

has_learnt() { # true if all routers of the set are here
    for router_of in $learners; do
        [ -e "$taught/$router_of.safetensors" ] || [ -e "$taught/$router_of.safetensors.1" ] || return 1
    done
}

gather() { # KIND FIRST LAST LABELS
    kind=$1 into=$learnt/$1-$3 limits='' light=$kept/$set/$1-$3.tar.xz
    mkdir -p "$learnt" "$kept/$set" && sed -n "$(($2 + 1)),${3}p" "$split/train.jsonl" >"$into.jsonl" || return
    set -- --labels "$4" --data "$into.jsonl" -o "$into"
    if [ "$kind" = gain-2 ]; then # by the ensemble of round 1, at the target
        set -- --router "$taught/first.safetensors" \
            --threshold "$(sed -n "s/^$target,.*,//p" "$kept/$set/aim-scores-first")" "$@"
    fi
    [ -z "$rollouts" ] || limits="--rollouts $((${rollouts#* } / $(echo "$slices" | wc -w)))"
    [ ! -e "$light" ] || "$python" -B tools/lab/study/labels.py unpack "$light" "$into" || return
    # shellcheck disable=SC2086
    run router collect -q -m "$edge" $by "$large" --task $task $form -n $max $limits "$@"
    gathered=$?
    [ $gathered -ne 0 ] || : >"$into.done" # what is unpacked has no hidden states yet
    "$python" -B tools/lab/study/labels.py pack "$into" "$light" && return $gathered # those of a part, too
}

study_claim() { "$python" -B tools/lab/study/claim.py "$@"; }

samples_to() { # TEXTS KIND...: print the options for the samples of the first texts
    samples_most=$1
    shift
    for kind; do
        first=0 most=$samples_most
        [ "$kind" != gain-2 ] || [ "$most" -le "$texts_2" ] || most=$texts_2
        for last in $slices; do
            [ "$last" -le "$most" ] || last=$most
            [ $first -ge "$last" ] || echo "--samples $learnt/$kind-$last"
            first=$last
        done
    done
}

teach() { # FILE OPTIONS...: train, and keep what is said of it in FILE.json
    file=$1
    shift
    run router train -q --json --share $target --seed "${SEED:-1}" "$@" -o "$file.safetensors" >"$file.json"
}

# Say of each training of a file what its held-out questions do: AUCs of what differs and what
# spoils, and the recall.
said() { # FILE COLUMNS
    sed 's/}/}\n/g' "$1.json" | awk -v row="$2" '
        function of(name) {
            return match($0, "\"" name "\": *[0-9.]+") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : ""
        }
        /"recall"/ { printf "%s,%d,%s,%s,%s\n", row, ++n, of("differ_auc"), of("spoils_auc"), of("recall") }'
}

# Train on the first texts, and let the first training route the part for choosing: at its own
# threshold, and then at the one that these scores give.
curve() { # TEXTS
    rows=$learnt/curve-$1.rows
    : >"$rows"
    for head in combined gain; do
        file=$learnt/curve-$1-$head width=$width_gain
        [ $head != combined ] || width=$width_combined
        # shellcheck disable=SC2046
        [ -e "$file.done" ] || teach "$file" $(samples_to "$1" gain-1) --head $head --width "$width" \
            --repeats "$few" || return
        : >"$file.done"
        router=$file.safetensors.1 at=''
        [ -e "$router" ] || router=$file.safetensors
        for pass in 1 2; do
            # shellcheck disable=SC2086
            run eval -q -m "$edge" $by "$large" --task $task $form -n $max --data "$split/form.jsonl" \
                --questions "${QUESTIONS:-200}" --policy "$(reads $head "$router")" $at \
                --jsonl "$file-$pass.jsonl" >/dev/null && items_of "$file-$pass.jsonl" >"$file-$pass.csv" || return
            [ $pass -eq 2 ] || at=$(study_claim --threshold $target "$file-1.jsonl") || return
            at="--threshold ${at##*,}"
        done
        said "$file" "$1,$head" >"$file.said"
        awk -F, '
            FILENAME == ARGV[1] { n += FNR > 1; right += $10; tokens += $11; cloud += $12; next }
            { print $0 "," (FNR > 1 ? "," : sprintf("%.4f,%.4f", cloud / tokens, right / n)) }' \
            "$file-2.csv" "$file.said" >>"$rows"
    done
    : >>"$kept/curve.csv" # with the rows that another machine has made
    { echo texts,head,seed,auc_differ,auc_spoils,recall65,routed,right &&
        { grep "^[0-9]" "$kept/curve.csv" | grep -v "^$1,"; cat "$rows"; } | sort -t , -s -k 1,1n; } \
        >"$kept/curve.csv.new" && mv "$kept/curve.csv.new" "$kept/curve.csv"
}

# Plan a router, trained several times, or with several members.
learns() { # NAME HEAD KINDS WIDTH REPEATS MEMBERS NEEDS
    file=$taught/$1.safetensors
    [ -e "$file" ] || file=$file.1
    depends="$asks $1 $2 $3 $4 $5 $6 $texts $slices $tap $many"
    minutes_of $((${5:-1} * ${6:-1})) 60 # seconds
    options="--head $2 ${4:+--width $4} ${5:+--repeats $5} ${6:+--members $6}"
    # shellcheck disable=SC2086
    step "$prefix-train-$1" "$minutes" "$7" "$file" learn "$1" "$3" $options
}

learn() { # NAME KINDS OPTIONS...
    name=$1 kinds=$2
    shift 2
    mkdir -p "$taught" "$kept/$set" || return
    # shellcheck disable=SC2046,SC2086
    teach "$taught/$name" $(samples_to "$texts" $kinds) "$@" && mv "$taught/$name.json" "$kept/$set"
}

# Plan a policy with a threshold: scores; with these the calibration questions at the target; with
# these, which correct it, the questions that measure. The scores of context have ties, so that its
# threshold is found on the calibration questions by eval.
arm() { # NAME TRAININGS QUESTIONS
    arm_needs=$claim_needs policy=$1 repeats=''
    [ "$1" = max-prob ] || arm_needs="$claim_needs $learner-train-$1" policy=$(reads "$1" "$taught/$1.safetensors")
    [ "$2" -eq 1 ] || repeats=$2
    looped="$arm_needs $prefix-scores-$1"
    depends="$asks $1 $2 $calibration $texts $slices $tap $width_gain $width_none $many"
    minutes_of $((calibration * $2)) $seconds
    if [ "$1" = context ]; then
        looped=$arm_needs minutes=$((3 * minutes))
    else
        step "$prefix-scores-$1" "$minutes" "$arm_needs" '' score "$1"
    fi
    share=$target
    step "$prefix-loop-$1" "$minutes" "$looped" '' in_loop "$1"
    asked_at "$1" "$2" "$3" $target "$1"
}

score() { # NAME
    mkdir -p "$work/$set" && head -n "$calibration" "$split/calibration.jsonl" >"$split/calibrated.jsonl" || return
    case $policy in *=*) set -- "$1" ;; *) set -- "$1" --threshold 0.4 ;; esac # no router has one
    # shellcheck disable=SC2086
    run eval -q -m "$edge" $by "$large" --task $task $form -n $max --data "$split/calibrated.jsonl" \
        --policy "$(trainings_of "${repeats:-1}" "$policy")" ${2:+$2 $3} --jsonl "$work/$set/scores-$1.jsonl" >/dev/null &&
        keep_aim scores-"$1" "$work/$set/scores-$1.jsonl"
}

in_loop() ( # NAME
    name=loop-$1 asked=$calibration test=$split/calibrated.jsonl
    head -n "$calibration" "$split/calibration.jsonl" >"$test" || exit
    [ "$1" = context ] || aim "$kept/$set/aim-scores-$1" || exit
    answers 1 1 "$policy" || exit
    [ "$1" = context ] || keep_aim "$name" "$work/$set/$name"/*.jsonl
)

# Keep the settings of journals with scores, and the thresholds for all shares.
keep_aim() { # NAME JOURNAL...
    to=$kept/$set/aim-$1
    shift
    mkdir -p "$kept/$set" && sed -n 1p "$1" >"$to.new" || return
    for at in $target 0.02 0.035 0.05 0.08 0.1; do
        study_claim --threshold $at "$@" >"$work/thresholds" || return
        sed "1d; s/^/$at,/" "$work/thresholds" >>"$to.new"
    done
    mv "$to.new" "$to"
}

# Plan the answers of a policy to the questions that measure, at the thresholds for a share that the
# calibration questions of FROM give; without FROM it has none.
asked_at() { # NAME TRAININGS QUESTIONS SHARE FROM SECONDS
    name=$1 policy=$1 repeats='' share=$4 asked=${QUESTIONS:-$3}
    [ "$1" != ends ] || policy="never always" # in one run, so that the answers of never name the pair
    case $5 in '') ;; max-prob) policy=$5 ;; *) policy=$(reads "$5" "$taught/$5.safetensors") ;; esac
    [ "$asked" -le "$3" ] || asked=$3
    [ "$2" -eq 1 ] || repeats=$2
    depends="$asks $1 $2 $4 ${5:+$calibration $texts $slices $tap $width_gain $width_none $many}"
    minutes_of $((asked * $2)) "${6:-$seconds}"
    parts=${PARTS:-$(((minutes + 34) / 35))} part=0
    while [ $part -lt "$parts" ]; do
        part=$((part + 1))
        step "$prefix-$1$([ "$parts" -eq 1 ] || echo .$part)" $(((minutes + parts - 1) / parts)) \
            "$claim_needs ${5:+$aimer-loop-$5}" '' in_measure $part "$parts" "$5"
    done
}

in_measure() { # PART PARTS FROM
    case $3 in
    '') ;;
    context) aim "$aims/loop-context.jsonl" ;;
    *) aim "$aims/aim-loop-$3" ;;
    esac || return
    if [ "$set,$policy" = claim/gsm8k,position ]; then # the first tokens, at the target
        position=0-$(unpacked "$kept/$set/ends.csv" | awk -F, -v part=$target '
            $6 == "never" { answers++; n += $11 }
            END { printf "%d", n / answers * part - 0.5 }') || return
    fi
    # shellcheck disable=SC2086
    answers "$1" "$2" $policy
}

alone() { # NAME QUESTIONS SHARE
    alone_seconds=$seconds
    [ "$1" != ends ] || alone_seconds=$(figure %.2f "$seconds_never + $seconds_always")
    asked_at "$1" 1 "$2" "$3" '' $alone_seconds
}

# Begin the answers of $name with the thresholds for $share that keep_aim has kept, or that a journal
# of context has.
aim() { # FILE
    known=$kept/$set/$name.jsonl
    [ ! -s "$known" ] || return 0
    mkdir -p "$kept/$set" && head -n "$calibration" "$split/calibration.jsonl" >"$split/calibrated.jsonl" || return
    asks_of=$(sha256sum <"$test" | cut -d ' ' -f 1) calibrates=$(sha256sum <"$split/calibrated.jsonl" | cut -d ' ' -f 1)
    sed -n "1s/\"data\":\"[^\"]*\"/\"data\":\"$asks_of\"/
        1s/\"calibration\":\"[^\"]*\"/\"calibration\":\"$calibrates\"/
        1s/\"questions\":[0-9]*/\"questions\":$asked/
        1s/\"targets\":\[[^]]*\],\"threshold\":\"[^\"]*\"/\"targets\":[$share],\"threshold\":\"nan\"/
        1p" "$1" >"$known.new" || return
    case $1 in
    */loop-context.jsonl) sed -n '/^{"calibrated"/p' "$1" ;;
    *)
        # A training is a policy of its own, or up to 0.5.1 a point of the only one.
        awk -F, -v share="$share" -v policies="$(sed -n '1s/.*"policies":\[\([^]]*\)\].*/\1/p' "$1" | grep -o '"policy":"[^"]*"' | cut -d '"' -f 4 | tr '\n' ,)" '
            BEGIN { n = split(policies, policy, ",") - 1 }
            FNR > 1 && $1 == share {
                printf "{\"calibrated\":\"%s\",\"share\":%s,\"point\":%d,\"threshold\":%s,\"tie\":0.0}\n",
                    policy[(n > 1) ? $4 : 1], share, (n > 1) ? 0 : $4 - 1, $6
            }' "$1"
        ;;
    esac >>"$known.new" && mv "$known.new" "$known"
}
