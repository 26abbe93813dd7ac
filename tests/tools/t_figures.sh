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
[ -e "$dir/fine" ]
