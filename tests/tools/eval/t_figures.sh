#!/bin/sh
# What README.md and router/results/README.md say of an experiment is what its table holds.
case ${BUILD:-build/x-release} in *-release) ;; *) echo "SKIP: pages and tables are the same in every build" && exit 77 ;; esac
set -u
LC_ALL=C
export LC_ALL
results=router/results
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
: >"$dir/fine"
. tools/results/lib.sh
joint=mlp=$(basename weights/routers/*.router.safetensors .safetensors)

for page in README.md router/results/README.md; do
    tr -s ' \n' ' ' <"$page" >"$dir/$(basename "$(dirname "$page")").text"
done
cp router/results/ARTIFACT.md "$dir/claims.text"
grep -qx "version: $(sed -n 's/^#define MIZZLE_VERSION "\(.*\)"/\1/p' router/mizzle.h)" CITATION.cff ||
    { echo "t_figures: CITATION.cff has another version" >&2 && fails; }

says() { # PAGE TEXT: the page has this text, wherever its lines end
    grep -qF -- "$2" "$dir/$1.text" || { echo "t_figures: $1: not there: $2" >&2 && fails; }
}

percent() { # FORMAT TABLE COLUMN CONDITION...: a value as a percentage
    percent_format=$1
    shift
    figure "$percent_format" "100 * $(value "$@")"
}

# Ways: each row of its table, and what is said of verify.
way() { value ways "$3" "policy=$1" "target=$2" "latency_ms=${4:-0}"; } # POLICY TARGET COLUMN [LATENCY]
for policy in never step query takeover mlp verify always; do
    target=0.050000 share='%.1f %%'
    case $policy in
    never) target='' share=%d ;;
    verify) target='' ;;
    always) target='' share='%d %%' ;;
    esac
    of() { figure "$1" "${3:-} $(way $policy "$target" "$2" "${4:-0}")"; } # FORMAT COLUMN [FACTOR [LATENCY]]
    says results "| $policy | $(of "$share" routed '100 *') | $(of '%.1f %%' accuracy '100 *') | $(
        of %.1f accuracy_low '100 *') to $(of %.1f accuracy_high '100 *') | $(of %.1f calls_answer) | $(
        of %.0f up) | $(of '%.0f %%' work '100 *') | $(of %.2f active) | $(of %.0f ms) | $(of %.0f ms '' 170) |"
done
five() { percent %.1f ways "$2" "policy=$1" target=0.050000 latency_ms=0; } # POLICY COLUMN
beside() { echo "$(five "$1" accuracy) % ($(five "$1" accuracy_low) to $(five "$1" accuracy_high))"; } # POLICY
says claims "$(beside mlp) beside $(beside query), $(beside step) and $(beside takeover)"
says results "with $(figure %.1f "$(way verify '' calls_answer)") calls where \`always\`, token by token, needs $(
    figure %.0f "$(way always '' calls_answer)")"
says results "close $(percent '%.0f %%' ways pgr policy=query target=0.100000 latency_ms=0) (query), $(
    percent %.0f ways pgr policy=step target=0.100000 latency_ms=0) (step) and $(
    percent '%.0f %%' ways pgr policy=takeover target=0.100000 latency_ms=0) (takeover)"
for latency in 0 50 170; do # it is slower than mlp at any round trip
    awk "BEGIN { exit !($(way verify '' ms $latency) > $(way mlp 0.050000 ms $latency)) }" ||
        { echo "t_figures: verify is not slower at $latency ms" >&2 && fails; }
done

# Ways with the real pair: each row, and what is said of each share.
real_way() { # TASK POLICY
    share=0.05 routed='%.1f %%' above=''
    case $2 in
    never | call) share='' routed=%d ;;
    verify) share='' ;;
    always) share='' routed='%d %%' ;;
    mix) ;;
    *) above=1 ;;
    esac
    of() { figure "$1" "${3:-} $(value real/ways "$2" "task=$task" "policy=$policy" "share=$share")"; } # FORMAT COLUMN [FACTOR]
    task=$1 policy=$2
    says results "| $policy | $(of "$routed" routed '100 *') | $(of '%.1f %%' accuracy '100 *') | $(
        of %.1f accuracy_low '100 *') to $(of %.1f accuracy_high '100 *') | $(of %.1f trips) | $(of %.0f read) | $(
        of %.0f active) | $(of %.0f ms) | $(of %.0f ms_170) |${above:+ $(of %.1f above '100 *') ($(of %.1f above_low '100 *') to $(of %.1f above_high '100 *'))} |"
}
for task in csqa gsm8k; do
    for policy in never step query takeover mix call verify always; do real_way $task $policy; done
done
apart() { # POLICY: points that mix is above it on GSM8K
    of() { percent %.1f real/ways "$2" task=gsm8k "policy=$1" share=0.05; }
    echo "$(of "$1" above) ($(of "$1" above_low) to $(of "$1" above_high))"
}
says results "above \`query\` by $(apart query | sed 's/ (/ points (/') and above \`takeover\` by $(apart takeover)"
says results "above \`step\` by $(apart step), which"
says claims "$(apart query | sed 's/ (/ points (/') and $(apart takeover); not shown above sentences: $(apart step)"
over() { # TASK POLICY SHARE: points that mix is above it
    of() { percent %.1f real/ways "$1" "task=$task" "policy=$policy" "share=$share"; }
    task=$1 policy=$2 share=$3
    echo "$(of above) ($(of above_low) to $(of above_high))"
}
says results "query by $(over csqa query 0.02), takeover by $(over csqa takeover 0.02) and step by $(
    over csqa step 0.02) at 2 %, and at 10 % by $(over csqa query 0.1), $(over csqa takeover 0.1) and $(over csqa step 0.1)."
says results "query by $(over gsm8k query 0.02), takeover by $(over gsm8k takeover 0.02), step by $(over gsm8k step 0.02);"
says results "takeover by $(over gsm8k takeover 0.1), and not shown above query by $(over gsm8k query 0.1) or step by $(over gsm8k step 0.1):"
says claims "$(over csqa query 0.05 | sed 's/ (/ points (/'), $(over csqa step 0.05) and $(over csqa takeover 0.05)"
far() { # SHARE POLICY...: what they route on GSM8K
    share=$1
    shift
    for policy; do percent %.1f real/ways routed task=gsm8k "policy=$policy" "share=$share"; echo; done | paste -sd ' '
}
says results "these route $(far 0.02 query takeover step | sed 's/ /, /; s/\(.*\) /\1 and /') %."
says results "these route $(far 0.1 takeover query step | sed 's/ /, /; s/\(.*\) /\1 and /') %,"
given() { # FOLDER POLICY: answers with a token of the large model, at 2, 5 and 10 %
    for share in 02 05 10; do
        awk -F, -v policy="$2" '$6 ~ policy && $12 > 0 { n++ } END { print n }' "$results/real/$1/ways-$share.csv"
    done | paste -sd ' ' | sed 's/ /, /; s/\(.*\) /\1 and /'
}
says results "few answers, $(given gsm8k '^query') and $(given gsm8k '^takeover') of 150,"
for policy in '^mlp=mix' '^query'; do # ids that the large model reads for an answer of which it writes a part
    says results "some $(awk -F, -v policy="$policy" '$6 ~ policy && $12 > 0 { n++; read += $14 } END { printf "%.0f", read / n }' \
        $results/real/reason/ways-05.csv) ids."
done
says claims "$(awk -F, 'NR > 1 { s += $6 } END { printf "%.0f", s / 3600 }' $results/real/log.csv) hours, of machines"

closed() { percent "${3:-%.0f}" real/ways "${4:-pgr}" task=csqa "policy=$1" "share=$2"; } # POLICY SHARE [FORMAT [COLUMN]]
shares() { echo "$(closed query 0.02 "$1" $2), $(closed query 0.05 "$1" $2) and $(closed query 0.1 "$1" $2) %"; } # FORMAT COLUMN
says results "it closes $(shares %.0f pgr) of the gap with $(shares %.1f routed) of the tokens"
says results "find some at 10 % ($(closed takeover 0.1) and $(closed step 0.1) % of the gap)"

for column in ms ms_50 ms_170; do # verify is slower than both
    of() { value real/ways $column task=csqa "policy=$1" "share=$2"; } # POLICY SHARE
    awk "BEGIN { exit !($(of verify '') > $(of always '') && $(of verify '') > $(of mix 0.05)) }" ||
        { echo "t_figures: verify of the real pair is not slower: $column" >&2 && fails; }
done

# Each experiment has a section.
for script in tools/results/*.sh; do
    name=$(basename "$script" .sh)
    [ "$name" = lib ] || grep -qE "drawn/$name[a-z-]*\.svg|\`(real/)?$name(\.measured)?\.csv\`|$name/figures\.csv" \
        "$results/README.md" || { echo "t_figures: no word of $name" >&2 && fails; }
done

for row in never: mlp:3 context:3 entropy: random: always:; do
    policy=${row%:*} trainings=${row#*:}
    of="task=csqa kv=f16 policy=$policy"
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
says results "By CITER's rule it is $(figure '%.0f' "100 * ($(value real/first citer task=csqa kv=f16 policy=mlp) / $(
    value real/first citer task=csqa kv=f16 policy=never) - 1)") % more."
says results "$(figure '%.0f' "100 * ($(right mlp) / $(right never) - 1)") % more of them are right than without"
exact=$(percent '%.1f %%' real/first accuracy task=csqa kv=f32 policy=context)
says results "gets $exact; \`mlp\` gets $(percent '%.1f %%' real/first accuracy task=csqa kv=f32 policy=mlp)"
letters=$(sed -n 2,101p $results/real/chat/slot.csv | awk -F, '{ n += $10 } END { print n }')
says results "is right in $letters of the same 100 questions"

# The demo's headline in README.md is a mean over trainings.
demo() { # COLUMN ROUTER: of edge-0.5, in percent
    percent '%.1f' rivals "$1" edge=edge-0.5 "router=$2"
}
says . "raises accuracy from $(demo accuracy never) % to $(demo accuracy mlp) %"
says . "by $(figure '%.0f' "100 * ($(demo accuracy mlp) / $(demo accuracy never) - 1)") %, with $(demo routed mlp) % of the tokens from the cloud"
says . "of $(demo accuracy_low mlp) to $(demo accuracy_high mlp)"
says claims "$(figure '%.0f' "100 * ($(demo accuracy mlp) / $(demo accuracy never) - 1)") % more with $(demo routed mlp) %: $(demo accuracy mlp) % ($(demo accuracy_low mlp) to $(demo accuracy_high mlp)) beside $(demo accuracy never) %"
says claims "mix less combined: $(demo difference_low mix) to $(demo difference_high mix) points"
of_paper() { sed -n "$1p" $results/$made/claims.csv | cut -d , -f "$3" | awk '{ printf "'"$2"'", 100 * $1 }'; } # LINE FORMAT FIELD
for made in report real; do
    more="$(of_paper 2 %.0f 4) % more"
    says claims "mlp: $more ($(of_paper 2 %.0f 5) to $(of_paper 2 %.0f 6)) with\
 $(of_paper 3 %.2f 4) % ($(of_paper 3 %.2f 5) to $(of_paper 3 %.2f 6))"
done
says results "$more right ($(of_paper 2 %.0f 5) to $(of_paper 2 %.0f 6)) with $(of_paper 3 %.1f 4) % of the tokens ($(
    of_paper 3 %.1f 5) to $(of_paper 3 %.1f 6)), as a reader"
of_ways() { sed -n "s,^<tr><td>$1</td><td>6.0</td><td>[0-9.]*</td><td>\([0-9]*\).0</td>.*,\1,p" $results/real/report.html; } # WAY
says results "(\`context\`) has $(of_ways context) % right for a reader, \`mlp\` $(of_ways mlp) %"
says results "by CITER's rule $(sed -n 's,.* of the tokens \([0-9]*\).0 % of mlp .*,\1,p' $results/real/report.html) % are right beside $(
    sed -n 's,^is \([0-9]*\).0 % of never.*,\1,p' $results/real/report.html) %"
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

in_form() { # FORM [TABLE]: keep the rows of the real pair in it
    form=chat task=csqa
    [ "$1" != reason ] || form="plain @$(sha256sum tools/results/real/reason.txt | cut -c 1-17)"
    case $1 in arc | gsm8k) task=$1 ;; esac
    awk -F, -v OFS=, -v task=$task -v form="$form" '
        NR > 1 && $1 == task && $2 == form { $2 = "this" } { print }' \
        "$results/real/${2:-figures}.csv" >"$dir/real.csv"
}

real() { # FORM POLICY ROUTED: a row of the real pair; ROUTED stands for a share that is not measured
    in_form "$1"
    right=$(of "$2" '%.1f %%' accuracy) routed=${3:-$(of "$2" '%.2f %%' routed)}
    read=$(figure %.0f "$(results=$dir value real read form=this policy="$2" score=citer against=)")
    says results "| $1 | ${2#*=} | $(asked "$2") | $right | $(of "$2" %.1f accuracy_low) to $(
        of "$2" %.1f accuracy_high) | $(as_read "$2" '%.1f %%' accuracy) | $routed | $read |"
}
asked() { results=$dir value real questions form=this "policy=$1" score=citer against= | sed 's/^1221/1,221/'; } # POLICY
as_read() { # POLICY FORMAT COLUMN [AGAINST]
    results=$dir percent "$2" real "$3" form=this policy="$1" score=answer "against=${4:-}"
}

of() { # POLICY FORMAT COLUMN [AGAINST]: of a row in the form that is kept
    results=$dir percent "$2" real "$3" form=this policy="$1" score=citer "against=${4:-}"
}

real chat never 0
real chat always '100 %'
for policy in position context combined mlp=mix query entropy random margin max-prob oracle; do real chat $policy ''; done
more="makes $(of mlp=mix %.0f relative_gain) % more answers right"
says results "With $(of mlp=mix %.1f routed) % of the tokens \`mix\` $more"
for policy in mlp=mix context; do
    says results "closes $(of $policy %.0f pgr) % of $([ $policy = context ] && echo it || echo 'the gap') ($(of $policy %.0f pgr_low) to $(of $policy %.0f pgr_high))"
done
says results "ids makes $(of context %.0f relative_gain) % more with $(of context %.1f routed) %"
says results "(\`position\`) has $(of position '%.1f %%' accuracy) right with $(of position '%.1f %%' routed)"
long() { figure %.0f "$(results=$dir value real tokens form=this policy="$1" score=citer against=)"; }
says results "Answers have $(long context) tokens with \`context\`, as many as the small model's own"
[ "$(long context)" = "$(long never)" ] || { echo "t_figures: answers of context are longer than the small model's" >&2 && fails; }
says results "$(long mlp=mix) with \`mix\` and $(long combined) with \`combined\`, nearly as many as the large model's, $(long always)"
equal() { # POLICY AGAINST [SIGN]: what it has more at an equal share
    echo "$(of "$1" %.1f equal "$2")${3:-} ($(of "$1" %.1f equal_low "$2") to $(of "$1" %.1f equal_high "$2"))"
}
level() { level=$(equal "$1" "$2") && level=${level% (*}${3:-:}\ ${level#* (} && echo "${level%)}"; } # POLICY AGAINST [WORD]
between=$(equal context mlp=mix)
says results "\`context\` is ${between% (*} points above \`mix\` ($(echo "${between#* (}" | tr -d ")"): not shown)"
above=$(equal mlp=mix combined)
says results "above it by ${above% (*} points (${above#* (}"
says results "\`max-prob\` has $(of max-prob %.0f relative_gain) % more right and closes $(of max-prob %.0f pgr) % of the gap ($(
    of max-prob %.0f pgr_low) to $(of max-prob %.0f pgr_high)) with $(of max-prob %.1f routed) %"
level=$(equal mlp=mix max-prob)
says results "above it (${level% (*} points: ${level#* (}"
says results "closes $(of oracle %.0f pgr) % of the gap ($(of oracle %.0f pgr_low) to $(of oracle %.0f pgr_high)) on the first 400"
says results "\`mix\` is $(of mlp=mix %.1f equal oracle | tr -d -) points below it ($(of mlp=mix %.1f equal_high oracle | tr -d -) to $(
    of mlp=mix %.1f equal_low oracle | tr -d -))"
says results "\`context\` level with it ($(level context oracle))"
alone() { figure '%.1f %%' "$(of max-prob %f accuracy) - $(of max-prob %f gain)"; } # the small model, on 400 questions
small=$(alone)
in_form reason
says results "the small model alone has $(alone) right in \`reason\` and $small in \`chat\`"
in_form chat
says claims "$(of mlp=mix %.0f relative_gain) % more, $(of mlp=mix %.0f pgr) % of the gap ($(of mlp=mix %.0f pgr_low) to $(of mlp=mix %.0f pgr_high)), with $(of mlp=mix %.2f routed) %"
says claims "not so: the table is ${between% (*} points above ($(echo "${between#* (}" | tr -d ")"): not shown)"
below() { as_read "$1" %f "equal${3:-}" "$2" | awk '{ printf "%.1f", -$1 }'; } # POLICY AGAINST [END]: as read
as_read_equal() { echo "$(as_read "$1" %.1f equal "$2")$3($(as_read "$1" %.1f equal_low "$2") to $(as_read "$1" %.1f equal_high "$2"))"; } # POLICY AGAINST WORDS
says results "\`combined\` is $(below combined max-prob) points below \`max-prob\` ($(below combined max-prob _high) to $(below combined max-prob _low): not shown), and \`mix\` is $(as_read_equal mlp=mix combined ' points above `combined` ') and level with \`max-prob\` ($(as_read_equal mlp=mix max-prob ': ' | tr -d '()'))"
routes() { # POLICY: of the shares of its trainings in form reason
    awk -F, -v policy="$1" '$6 == policy { tokens[$8] += $11; cloud[$8] += $12 } END { for (k in cloud) print 100 * cloud[k] / tokens[k] }' \
        "$results/real/reason/routers.csv" | sort -n | sed -n '1p; $p' | xargs printf '%.1f to %.1f %%'
}
spread() { # FORM POLICY: of the right answers of its trainings
    awk -F, -v policy="$2" '$6 == policy { n[$8]++; right[$8] += $9 } END { for (k in n) print 100 * right[k] / n[k] }' \
        "$results/real/$1/routers.csv" | sort -n | sed -n '1p; $p' | xargs printf '%.1f to %.1f %%'
}
says results "they have $(spread chat mlp=mix) right"
says results "Its five trainings route $(routes mlp=mix) and have $(spread reason mlp=mix) right"
says results "those of \`combined\` $(routes combined) and $(spread reason combined)"
says results "whose five trainings have $(spread arc combined) right, and mix's $(spread arc mlp=mix)"
real chat slot '1 token an answer'
real gsm8k never 0
real gsm8k always '100 %'
says results "large model has $(of always '%.0f %%' relative_gain) more right"
for policy in random max-prob context combined mlp=mix oracle; do real gsm8k $policy ''; done
says results "(\`oracle\`) has $(of oracle %.0f relative_gain) % more right with $(of oracle %.1f routed) % of the tokens, on 100 questions, and closes $(
    of oracle %.0f pgr) % of the gap ($(of oracle %.0f pgr_low) to $(of oracle %.0f pgr_high)). \`mix\` is $(
    figure %.1f "-1 * $(of mlp=mix %f equal oracle)") points below it there ($(of mlp=mix %.1f equal_low oracle) to $(of mlp=mix %.1f equal_high oracle): not shown)"
says . "mix makes $(of mlp=mix %.0f relative_gain) % more answers right with $(of mlp=mix '%.1f %%' routed) of the tokens"
closes="closes $(of mlp=mix %.0f pgr) % of the gap ($(of mlp=mix %.0f pgr_low) to $(of mlp=mix %.0f pgr_high))"
says results "makes $(of mlp=mix %.0f relative_gain) % more answers right with 16 tokens"
says results "$closes: $(of mlp=mix %.1f gain) points"
says claims "$(of mlp=mix %.0f relative_gain) % more, ${closes#closes }, with $(of mlp=mix %.2f routed) %"
for rival in random max-prob context combined; do
    says results "$(of mlp=mix %.1f equal $rival) $([ $rival = random ] && echo 'points ')above \`$rival\` ($(of mlp=mix %.1f equal_low $rival) to $(of mlp=mix %.1f equal_high $rival))"
done
says results "$(of mlp=mix %.1f gain) points ($(of mlp=mix %.1f gain_low) to $(of mlp=mix %.1f gain_high)), where 60 % would be $(
    of never '0.6 * %f' accuracy | { read -r sum && figure %.1f "$sum"; })"
says claims "$(of mlp=mix %.1f equal random) points ($(of mlp=mix %.1f equal_low random) to $(of mlp=mix %.1f equal_high random))"
some() { echo "$(percent '%.1f %%' real/ways accuracy task=gsm8k policy=mix "share=$1") ${2:-}with $(
    percent '%.1f %%' real/ways routed task=gsm8k policy=mix "share=$1")"; } # SHARE [WORDS]: of one training
says results "$(some 0.02 'right ') of the tokens, $(some 0.05) and $(some 0.1), each give or take eight points, where the small model alone has $(
    percent '%.1f %%' real/ways accuracy task=gsm8k policy=never)"
real arc never 0
real arc always '100 %'
real arc slot '1 token an answer'
for policy in random entropy margin max-prob combined mlp=mix position; do real arc $policy ''; done
says results "and $(equal mlp=mix max-prob ' above `max-prob`'): neither is shown"
says results "at its place alone has $(of position '%.1f %%' accuracy) right with $(of position '%.1f %%' routed), one token behind the fixed text $(of slot '%.1f %%' accuracy)"
says results "makes $(of mlp=mix %.0f relative_gain) % more answers right with $(of mlp=mix %.1f routed) % of the tokens, and closes $(
    of mlp=mix %.0f pgr) % of the gap ($(of mlp=mix %.0f pgr_low) to $(of mlp=mix %.0f pgr_high)). At an equal share it is $(
    of mlp=mix %.1f equal combined) points above \`combined\` ($(of mlp=mix %.1f equal_low combined) to $(of mlp=mix %.1f equal_high combined))"
says claims "$(of mlp=mix %.0f relative_gain) % more, $(of mlp=mix %.0f pgr) % of the gap ($(of mlp=mix %.0f pgr_low) to $(of mlp=mix %.0f pgr_high)), with $(of mlp=mix %.2f routed) % |"
says results "As read, it makes $(as_read mlp=mix %.0f relative_gain) % more right and closes $(as_read mlp=mix %.0f pgr) % of the gap ($(
    as_read mlp=mix %.0f pgr_low) to $(as_read mlp=mix %.0f pgr_high)), and is $(as_read_equal mlp=mix combined ' points above `combined` ')"
real reason never 0
for policy in oracle query entropy random margin max-prob; do real reason $policy ''; done
says results "It closes $(of oracle '%.0f %%' pgr) of the gap"
says results "closes $(of query '%.0f %%' pgr) of the gap ($(of query %.0f pgr_low) to $(of query %.0f pgr_high)), as much"
for rival in oracle entropy margin max-prob random query; do
    above=$(equal mlp=mix $rival)
    case $rival in oracle | query) above="${above% (*} points above it (${above#* (}" ;; *) above="${above% (*} above \`$rival\` (${above#* (}" ;; esac
    says results "$above"
done
for policy in position context combined mlp=mix mlp=mix-lower combined=joints-combined mlp=joints mlp=joints-lower; do
    real reason $policy ''
    name="(${policy#mlp=}) "
    case $policy in
    position | *joints*) continue ;;
    *-lower) name='mix at a lower threshold, planned after that ' ;;
    esac
    says . "$name| $(of $policy '%.1f %%' accuracy) | $(of $policy '%.1f %%' routed) |"
done
says . "(mix, of more tasks; 400 questions) | $(of "$joint" '%.1f %%' accuracy) | $(of "$joint" '%.1f %%' routed) |"
says . "least sure (max-prob; 400 questions) | $(of max-prob '%.1f %%' accuracy) | $(of max-prob '%.1f %%' routed) |"
real reason slot '1 token an answer'
real reason always '100 %'
says . "| the small model alone | $(of never '%.1f %%' accuracy) | 0 |"
says . "| the large model alone | $(of always '%.1f %%' accuracy) | 100 % |"
says . "no small model (slot) | $(of slot '%.1f %%' accuracy) | one token |"
says . "one token in twenty brings $(of mlp=mix-lower %.0f relative_gain) % more right answers"
closes() { echo "closes $(of "$1" %.0f pgr) % of the gap ($(of "$1" %.0f pgr_low) to $(of "$1" %.0f pgr_high))"; } # POLICY
says results "makes $(of mlp=mix %.0f relative_gain) % more answers right and $(closes mlp=mix)"
says results "makes $(of mlp=mix-lower %.0f relative_gain) % more answers right and $(closes mlp=mix-lower)"
points() { above=$(equal "$1" "$2") && echo "${above% (*} points above${3:-} (${above#* (}"; } # POLICY AGAINST [NAME]
says results "$(points mlp=mix context ' `context`')"
says results "$(points mlp=mix-lower context ' `context`')"
says results "level with \`combined\` ($(level mlp=mix combined))"
says results "level with \`combined\` ($(level mlp=mix-lower combined))"
says results "above \`position\`, which needs no training ($(level mlp=mix position)); \`mix-lower\` is by $(equal mlp=mix-lower position ' points'),"
says results "\`combined\` by $(equal combined position)"
gap_of() { echo "$(of "$1" %.0f pgr) % ($(of "$1" %.0f pgr_low) to $(of "$1" %.0f pgr_high)), with $(of "$1" %.2f routed) %"; } # POLICY
says claims "interval: $(gap_of mlp=mix); $(gap_of mlp=mix-lower) |"
says claims "hangs on the method: with $(of mlp=mix %.2f routed) % $(points mlp=mix context | sed 's/ above//'), with $(
    of mlp=mix-lower %.2f routed) % $(points mlp=mix-lower context | sed 's/ above//'); as first"
says claims "not shown: $(equal mlp=mix-lower combined | sed 's/ / points /') |"
says claims "| $(of slot %.1f accuracy) % beside $(of always %.1f accuracy) % |"
gap=$(of always %.1f gain)
closed=$(of position %.0f pgr) low=$(of position %.0f pgr_low) high=$(of position %.0f pgr_high)
says results "The gap between the models is $gap points"
says results "closes $closed % of the gap ($low to $high)"

# One that reads the hidden state alone, at several shares.
gains='' shares=''
for row in 'chat 0.02' 'chat 0.05' 'chat 0.07' 'reason 0.02' 'reason 0.05' 'reason 0.07'; do
    share=${row#* } form_of=${row% *}
    in_form "$form_of"
    awk -F, -v share="$share" 'NR == 1 || ($2 == "this" && $4 == "mlp.1" && $5 == share)' "$dir/real.csv" >"$dir/mlp.csv"
    of_mlp() { results=$dir percent "$1" mlp "$2" score=citer against=; } # FORMAT COLUMN
    says results "| $form_of | mlp | 400 | $(of_mlp '%.1f %%' accuracy) | $(of_mlp %.1f accuracy_low) to $(
        of_mlp %.1f accuracy_high) | $(results=$dir percent '%.1f %%' mlp accuracy score=answer against=) | $(
        of_mlp '%.2f %%' routed) | $(figure %.0f "$(results=$dir value mlp read score=citer against=)") |"
    case $row in
    'chat 0.05')
        says claims "$(of_mlp %.0f relative_gain) % more with $(of_mlp %.2f routed) %; as a reader takes the answers $(
            results=$dir percent %.0f mlp relative_gain score=answer against=) % more"
        says results "$(of_mlp %.0f relative_gain) % more answers right with $(of_mlp %.1f routed) % of the tokens"
        says results "($(results=$dir percent %.0f mlp relative_gain score=answer against=) % more with $(of_mlp %.1f routed) %)"
        ;;
    reason*)
        [ "$row" != 'reason 0.05' ] || says . "(mlp; 400 questions) | $(of_mlp '%.1f %%' accuracy) | $(of_mlp '%.1f %%' routed) |"
        gains="$gains $(of_mlp %.0f relative_gain)" shares="$shares $(of_mlp %.1f routed)"
        ;;
    'chat 0.07') says results "and $(of_mlp %.0f relative_gain) % more with $(of_mlp %.1f routed) %" ;;
    esac
done

listed() { echo "$1, $2 and $3"; }
says results "makes $(listed $gains) % more right with $(listed $shares) % of the tokens, and at the last closes $(
    of_mlp %.0f pgr) % of the gap ($(of_mlp %.0f pgr_low) to $(of_mlp %.0f pgr_high))"

# The columns of Table 1, awaited and ahead, beside the paper's.
rows=$(awk -F, '
    FNR == 1 { for (i in at) delete at[i]; for (i = 1; i <= NF; i++) at[$i] = i; next }
    FILENAME ~ /measured/ && $at["ahead"] == 4 { ahead[$at["threshold"] + 0] = $at["overall_s"] }
    FILENAME ~ /measured/ && $at["ahead"] == 0 {
        row[$at["threshold"] + 0] = sprintf("| %.2f | %s %% | %s | %s | %s | %s | %s |", $at["threshold"],
            $at["routed"], $at["edge_s"], $at["ttft_s"], $at["tbt_s"], $at["cloud_s"], $at["overall_s"])
    }
    $1 == "printed" { t = $2 + 0; print row[t], ahead[t], "|", $3, "% |", $8, "|" }' \
    $results/real/paper.measured.csv $results/paper.csv)
while IFS= read -r row; do says results "$row"; done <<END
$rows
END
says claims "$(echo "$rows" | awk '$2 == "0.50" { print $15, "s with", $4, "%; the paper\x27s devices, without KV cache,", $22, "s with", $19, "%" }') |"

# One router for all.
for form_of in chat reason arc gsm8k; do
    in_form $form_of
    for name in "joint $joint" "unseen mlp=without-$task" 'joint-combined combined=joint-combined'; do
        policy=${name#* }
        row="| $form_of | ${name% *} | $(of "$policy" '%.1f %%' accuracy) | $(of "$policy" '%.2f %%' routed) | $(
            of "$policy" '%.0f %%' pgr) ($(of "$policy" %.0f pgr_low) to $(of "$policy" %.0f pgr_high)) |"
        for rival in mlp=mix combined context; do
            [ $form_of,$rival = arc,context ] || row="$row $(equal "$policy" $rival)"
            row="$row |"
        done
        says results "$row"
    done
done
says results "makes $(of mlp=without-gsm8k %.0f relative_gain) % more right with $(of mlp=without-gsm8k %.1f routed) % of the tokens, $(
    equal mlp=without-gsm8k random ' points above `random`') and $(equal mlp=without-gsm8k max-prob ' above `max-prob`')"
for form_of in reason chat arc; do
    in_form $form_of
    above=$(equal "$joint" combined=joint-combined)
    case $form_of in
    reason) says results "it is ${above% (*} points above \`joint-combined\` (${above#* (}" ;;
    chat)
        read_above=$(as_read_equal "$joint" combined=joint-combined ' ')
        says results "In \`chat\` it is ${above% (*} above (${above#* (}" ;;
    arc) says results "on ARC ${above% (*} above (${above#* (}; as read, $read_above and $(as_read_equal "$joint" combined=joint-combined ' ')" ;;
    esac
done
read_as() { results=$dir percent '%.1f %%' real accuracy form=this "policy=$1" score=answer against=; } # POLICY
says results "it has $(read_as mlp=without-arc) right, the large model $(read_as always)"

# The second plan and the third: on all questions, and on those that had not been asked.
in_form reason
all=$(points mlp=joints-lower combined=joints-combined)
says results "It is ${all%above *}above \`joints-combined\` (${all#* above (} and"
says results "and $(equal mlp=joints-lower combined ' above `combined`')"
says results "makes $(of mlp=joints-lower %.0f relative_gain) % more answers right and $(closes mlp=joints-lower) with $(of mlp=joints-lower '%.1f %%' routed)"
in_form reason unasked
for policy in never context combined mlp=mix combined=joints-combined mlp=joints always; do
    routed=$(of "$policy" '%.2f %%' routed) closes="$(of "$policy" '%.0f %%' pgr) ($(
        of "$policy" %.0f pgr_low) to $(of "$policy" %.0f pgr_high))" above=''
    case $policy in
    never) routed=0 closes='' ;;
    always) routed='100 %' closes='' ;;
    mlp=joints) ;;
    *) above=$(equal mlp=joints "$policy") ;;
    esac
    says results "| ${policy#*=} | $(of "$policy" '%.1f %%' accuracy) | $(of "$policy" %.1f accuracy_low) to $(
        of "$policy" %.1f accuracy_high) | $routed |${closes:+ $closes} |${above:+ $above} |"
done
says results "it is $(points mlp=joints combined=joints-combined ' `joints-combined`')"
says results "\`joints-lower\`: $(of mlp=joints-lower '%.1f %%' accuracy) right with $(of mlp=joints-lower '%.2f %%' routed)"
lower=$(equal mlp=joints-lower combined=joints-combined)
says results "which hit that share, ${lower% (*} above (${lower#* (}. That hangs on the method"
says claims "hangs on the method: ${lower% (*} points (${lower#* (}, with $(of mlp=joints-lower %.2f routed) %, as first computed -0.2 to 4.0; on all 1,221 questions ${all% points above (*} (${all#*(} |"
says results "(\`joints-lower\`: $(level mlp=joints-lower combined ,))"
says claims "not shown: $(equal mlp=joints-lower combined | sed 's/ / points /') |"
context=$(equal mlp=joints-lower context)
says results "Above \`context\` it is, by $context"
says claims "interval: $(gap_of mlp=joints) |"
awk -F, 'NR == 1 || ($2 != "chat" && $4 ~ /[.]router$|held$/)' $results/real/figures.csv >"$dir/open.csv"
open() { results=$dir percent '%.1f %%' open routed task=gsm8k score=citer "policy=$1" against=; } # POLICY
says results "it routes $(open "$joint") of their tokens"
says results "it, $(open mlp=held) (\`held\`)"

# Each number in router/results/README.md is one of the tables that its section names, as it is or
# as a percentage, or a mean of it over seeds, or stands in the section's command or in the script
# that made them, or in the list below, with what it is. A number may have another's cell by chance;
# but sentences that are older than their table do not pass.
#
# SECTION|NUMBER|WHAT: what is computed by t_figures.sh, or from two numbers, or is no result.
cat >"$dir/others" <<'LIST'
results|160|things in the demo world, of all seeds (tools/lab/demo/world.h)
A real pair|8,398|samples of the run of its commands
A real pair|86|more right answers, above
The whole development set|32.5|the least of five trainings, above
The whole development set|48.4|the most of five trainings, above
The whole development set|45.2|the most of five trainings on ARC, above
The whole development set|64|32B / 0.5B
The whole development set|94,809|samples of GSM8K's collection
The whole development set|6,328|its tokens in which the models differ
The columns of the paper's Table 1|0.1|2.580 s for 25.50 calls
The columns of the paper's Table 1|0.3|1.308 s for 4.39 calls
One router for all|149,739|tokens of four collections
Which head, before anything is measured|145|MB of output.weight (mizzle info --tensors)
Which head, before anything is measured|392|MB of all tensors but token_embd
Which head, before anything is measured|1.8|5 % of 145 / 392, in percent
The whole development set|7.3|an interval with one part for all draws
Frozen|610|the first digits of a commit
Ways: how|610|the first digits of a commit
Ways: how|28|7 * 8.595 / 47 - 1
Ways, with|84|7 * 5.890 / 22.38 - 1
Ways, with|63|ids read for an answer with a token of the large model, above
Network|610|the first digits of a commit
Network|2.4|network.csv of 610d3ebb less network-ahead.csv, at most
The columns|610|the first digits of a commit
Network|2.56|511 / 200
Tasks|490|questions of all kinds but one (tools/results/tasks.sh)
Labels|77.9|one training, before there were five
Labels|85.5|the same
Labels|1024|a width that was tried
Labels|7.5|share of tokens that are facts (t_world_places)
Labels|3,000|questions of a training that the table does not hold
LIST

# Print the tables and scripts of a section, which is on stdin.
sources() {
    grep -o 'real/[a-z0-9.-]*\.csv\|[a-z][a-z0-9.-]*\.csv\|drawn/[a-z0-9.-]*\.svg' |
        sed 's,^drawn/,,; s/\.[a-z]*$//' | awk '{ print; if (sub(/-.*/, "")) print }' | sort -u |
        while read -r name; do
            for file in $results/$name.csv $results/drawn/$name.csv tools/results/$name.sh; do
                [ ! -e "$file" ] || echo "$file"
            done
            case $name in real/*) echo tools/results/real/steps.sh ;; esac
        done
}

awk -v dir="$dir" '
    /^    / { print >(dir "/commands." n); next }
    /^#/ { n++; print substr($0, index($0, " ") + 1) >(dir "/title." n) }
    { print >(dir "/section." n) }' $results/README.md

cat >"$dir/check.awk" <<'AWK'
function plain(text) { gsub(/,/, "", text); return text }
function keep(value) { if (value ~ /^-?[0-9.]+(e-?[0-9]+)?$/) cells[n++] = value + 0 }
function column(name,    i) { for (i = 1; i <= fields; i++) if (head[i] == name) return i; return 0 }
# The table, the script or the commands: every number, and means over the seeds.
FILENAME ~ /[.]csv$/ {
    m = split($0, cell, ",")
    if (FNR == 1) {
        fields = split($0, head, ",")
        seed = column("seed")
        first = column("questions")
        next
    }
    key = FILENAME
    for (i = 1; i <= m; i++) {
        k = split(cell[i], part, " ")
        for (j = 1; j <= k; j++) keep(part[j])
        if (seed && i < first && i != seed) key = key "," cell[i]
    }
    if (seed)
        for (i = first; i <= m; i++)
            if (cell[i] ~ /^-?[0-9.]+$/) { sum[key "," i] += cell[i]; rows[key "," i]++ }
    next
}
FILENAME ~ /others$/ {
    split($0, part, "|")
    if (index(title, part[1]) == 1) known[plain(part[2])] = FNR
    next
}
FILENAME !~ /section/ {
    while (match($0, /[0-9]+([.][0-9]+)?/)) {
        written[substr($0, RSTART, RLENGTH) + 0] = 1
        $0 = substr($0, RSTART + RLENGTH)
    }
    next
}
{ text = text " " $0 }
END {
    for (key in sum) if (rows[key] > 1) keep(sum[key] / rows[key])
    while (match(text, /(^|[^A-Za-z0-9_.-])[0-9][0-9,]*([.][0-9]+)?( %)?/)) {
        found = substr(text, RSTART, RLENGTH)
        context = substr(text, RSTART > 50 ? RSTART - 50 : 1, RLENGTH + 60)
        text = substr(text, RSTART + RLENGTH)
        sub(/^[^0-9]/, "", found)
        share = sub(/ %$/, "", found)
        sub(/,$/, "", found)
        digits = plain(found)
        value = digits + 0
        places = index(digits, ".") ? length(digits) - index(digits, ".") : 0
        if (!share && !places && value <= 10) continue # a count in words, or "two"
        if (share && digits == "95") continue # of intervals
        if (digits in known) { print known[digits] >used; continue }
        fine = value in written || value / 100 in written
        for (i = 0; i < n && !fine; i++)
            for (scale = 0.001; scale <= 100 && !fine; scale = scale < 1 ? 1 : 100 * scale)
                fine = sprintf("%." places "f", cells[i] * scale) + 0 == value || \
                       sprintf("%." places "f", -cells[i] * scale) + 0 == value
        if (fine) continue
        print "t_figures: " title ": no table has " found ": ..." context >"/dev/stderr"
        bad = 1
    }
    exit bad
}
AWK

: >"$dir/used"
failed=0
for title in "$dir"/title.*; do
    n=${title##*.}
    [ -e "$dir/commands.$n" ] || : >"$dir/commands.$n"
    awk -v title="$(cat "$title")" -v used="$dir/used.$n" -f "$dir/check.awk" \
        $(cat "$dir/section.$n" "$dir/commands.$n" | sources) "$dir/others" "$dir/commands.$n" \
        "$dir/section.$n" || failed=1
    cat "$dir/used.$n" >>"$dir/used" 2>/dev/null
done
awk 'NR == FNR { used[$1]; next } !(FNR in used) { print "t_figures: not there any more: " $0; bad = 1 }
     END { exit bad }' "$dir/used" "$dir/others" >&2 || failed=1
[ $failed -eq 0 ] && [ -e "$dir/fine" ]
