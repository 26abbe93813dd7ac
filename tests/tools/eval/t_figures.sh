#!/bin/sh
# What README.md and router/results/README.md say of an experiment is what its table holds.
set -u
LC_ALL=C
export LC_ALL
results=router/results
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
: >"$dir/fine"
. tools/results/lib.sh

for page in README.md router/results/README.md; do
    tr -s ' \n' ' ' <"$page" >"$dir/$(basename "$(dirname "$page")").text"
done

says() { # PAGE TEXT: the page has this text, wherever its lines end
    grep -qF -- "$2" "$dir/$1.text" || { echo "t_figures: $1: not there: $2" >&2 && fails; }
}

percent() { # FORMAT TABLE COLUMN CONDITION...: a value as a percentage
    percent_format=$1
    shift
    figure "$percent_format" "100 * $(value "$@")"
}

for row in never: mlp:3 context:3 entropy: random: always:; do
    policy=${row%:*} trainings=${row#*:}
    of="task=csqa kv=f16 policy=$policy"
    # shellcheck disable=SC2086
    {
        right=$(percent '%.1f %%' real/first accuracy $of)
        low=$(percent '%.1f' real/first accuracy_low $of) high=$(percent '%.1f' real/first accuracy_high $of)
        citer=$(percent '%.1f %%' real/first citer $of)
        routed=$(percent '%.2f %%' real/first routed $of)
        calls=$(figure '%.2f' "$(value real/first calls_answer $of)")
    }
    case $policy in
    never) routed=0 calls=0 ;;
    always) routed='100 %' ;;
    esac
    says results "| $policy |${trainings:+ $trainings} | $right | $low to $high | $citer | $routed | $calls |"
done

right() { # POLICY
    value real/first accuracy task=csqa kv=f16 policy="$1"
}
says results "answers are $(figure '%.0f' "100 * ($(right mlp) / $(right never) - 1)") % better than without"
exact=$(percent '%.1f %%' real/first accuracy task=csqa kv=f32 policy=context)
says results "gets $exact; \`mlp\` gets $(percent '%.1f %%' real/first accuracy task=csqa kv=f32 policy=mlp)"
letters=$(sed -n 2,101p $results/real/items-chat-slot.csv | awk -F, '{ n += $10 } END { print n }')
says results "is right in $letters of the same 100 questions"

# The demo's headline in README.md is a mean over trainings.
demo() { # COLUMN ROUTER: of edge-0.5, in percent
    percent '%.1f' rivals "$1" edge=edge-0.5 "router=$2"
}
says . "raises accuracy from $(demo accuracy never) % to $(demo accuracy mlp) %"
says . "by $(figure '%.0f' "100 * ($(demo accuracy mlp) / $(demo accuracy never) - 1)") %, with $(demo routed mlp) % of the tokens from the cloud"
says . "of $(demo accuracy_low mlp) to $(demo accuracy_high mlp)"
says . "max-prob gets $(demo accuracy max-prob) %, entropy $(demo accuracy entropy) %"
says . "(context) $(demo accuracy context) %"
says . "(combined), $(demo accuracy combined) %"
says . "(mix), $(demo accuracy mix) %"
for size in 0.1 0.5 1; do
    row="| edge-$size |"
    for router in never context combined mlp mix always; do
        row="$row $(percent '%.1f %%' rivals accuracy edge=edge-$size router=$router) |"
    done
    low=$(percent '%.1f' rivals difference_low edge=edge-$size router=mix)
    high=$(percent '%.1f' rivals difference_high edge=edge-$size router=mix)
    says results "$row $low to $high points |"
done

# Heads on questions that measure nothing.
for head in combined mlp mix; do
    width=64 policy=$head
    [ $head != combined ] || width=32
    [ $head != mix ] || policy='mlp=mix'
    row=''
    for form in reason chat; do
        row="$row $(figure '%.3f' "$(value real/choice auc form=$form head=$head width=$width)") |"
        row="$row $(percent '%.1f %%' real/choice caught form=$form head=$head width=$width) |"
    done
    for column in accuracy routed; do
        row="$row $(percent '%.1f %%' real/choice-loop $column score=citer policy=$policy) |"
    done
    says results "$row $(percent '%.0f %%' real/choice-loop pgr score=citer policy=$policy) |"
done
points="$(percent '%.1f' real/choice-loop difference score=citer policy='mlp=mix') points, has an interval from"
points="$points $(percent '%.1f' real/choice-loop difference_low score=citer policy='mlp=mix') to"
says results "$points $(percent '%.1f' real/choice-loop difference_high score=citer policy='mlp=mix')"

real() { # FORM POLICY ROUTED: a row of the real pair; ROUTED stands for a share that is not measured
    form=chat
    [ "$1" != reason ] || form="plain @$(sha256sum tools/results/real/reason.txt | cut -c 1-17)"
    awk -F, -v OFS=, -v form="$form" 'NR > 1 && $2 == form { $2 = "this" } { print }' \
        "$results/real/figures.csv" >"$dir/real.csv"
    right=$(results=$dir percent '%.1f %%' real accuracy form=this policy="$2" score=citer)
    low=$(results=$dir percent '%.1f' real accuracy_low form=this policy="$2" score=citer)
    high=$(results=$dir percent '%.1f' real accuracy_high form=this policy="$2" score=citer)
    routed=$(results=$dir percent '%.2f %%' real routed form=this policy="$2" score=citer)
    read=$(figure %.0f "$(results=$dir value real read form=this policy="$2" score=citer)")
    says results "| $1 | $2 | $right | $low to $high | ${3:-$routed} | $read |"
}

real chat slot '1 token an answer'
real reason never 0
real reason position ''
real reason slot '1 token an answer'
real reason always '100 %'
gap=$(results=$dir percent '%.1f' real gain form=this policy=always score=citer)
closed=$(results=$dir percent '%.0f' real pgr form=this policy=position score=citer)
low=$(results=$dir percent '%.0f' real pgr_low form=this policy=position score=citer)
high=$(results=$dir percent '%.0f' real pgr_high form=this policy=position score=citer)
says results "The gap between the models is $gap points"
says results "closes $closed % of the gap ($low to $high)"
[ -e "$dir/fine" ]
