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

# Ways of the demo: what is said of each.
way() { value ways "$3" "policy=$1" "target=$2" "latency_ms=${4:-0}"; } # POLICY TARGET COLUMN [LATENCY]
five() { percent %.1f ways "$2" "policy=$1" target=0.050000 latency_ms=0; } # POLICY COLUMN
beside() { echo "$(five "$1" accuracy) % ($(five "$1" accuracy_low) to $(five "$1" accuracy_high))"; } # POLICY
says results "$(beside mlp) beside $(beside query), $(beside step) and $(beside takeover)"
says results "with $(figure %.1f "$(way verify '' calls_answer)") calls where \`always\`, token by token, needs $(
    figure %.0f "$(way always '' calls_answer)")"
says results "close $(percent '%.0f %%' ways pgr policy=query target=0.100000 latency_ms=0) (query), $(
    percent %.0f ways pgr policy=step target=0.100000 latency_ms=0) (step) and $(
    percent '%.0f %%' ways pgr policy=takeover target=0.100000 latency_ms=0) (takeover)"
says results "the large model computes $(five mlp work | xargs printf '%.0f %%') of the ids, with \`takeover\` $(
    five takeover work | xargs printf '%.0f %%')"
for latency in 0 50 170; do # it is slower than mlp at any round trip
    awk "BEGIN { exit !($(way verify '' ms $latency) > $(way mlp 0.050000 ms $latency)) }" ||
        { echo "t_figures: verify is not slower at $latency ms" >&2 && fails; }
done

# Ways with the real pair.
apart() { # POLICY: points that mix is above it on GSM8K
    of() { percent %.1f real/ways "$2" task=gsm8k "policy=$1" share=0.05; }
    echo "$(of "$1" above) ($(of "$1" above_low) to $(of "$1" above_high))"
}
says results "$(apart query | sed 's/ (/ points (/') and $(apart takeover); not shown above sentences: $(apart step)"
over() { # TASK POLICY SHARE: points that mix is above it
    of() { percent %.1f real/ways "$1" "task=$task" "policy=$policy" "share=$share"; }
    task=$1 policy=$2 share=$3
    echo "$(of above) ($(of above_low) to $(of above_high))"
}
says results "$(over csqa query 0.05 | sed 's/ (/ points (/'), $(over csqa step 0.05) and $(over csqa takeover 0.05)"
says results "$(value real/ways read task=csqa policy=mix share=0.05 | xargs printf %.0f) ids read for an answer, with \`query\` $(
    value real/ways read task=csqa policy=query share=0.05 | xargs printf %.0f)."
says results "one call of $(value real/ways ms_170 task=csqa policy=always share=) ms, and the device alone takes $(
    value real/ways ms_170 task=csqa policy=never share=)"
says results "$(awk -F, 'NR > 1 { s += $6 } END { printf "%.0f", s / 3600 }' $results/real/log.csv) hours, of machines"

# Each experiment has a section.
for script in tools/results/*.sh; do
    name=$(basename "$script" .sh)
    [ "$name" = lib ] || grep -qE "drawn/$name[a-z-]*\.svg|\`(real/)?$name(\.measured)?\.csv(\.gz)?\`|$name/figures\.csv" \
        "$results/README.md" || { echo "t_figures: no word of $name" >&2 && fails; }
done

right() { # POLICY
    value real/first accuracy task=csqa kv=f16 policy="$1"
}
says results "By CITER's rule it is $(figure '%.0f' "100 * ($(value real/first citer task=csqa kv=f16 policy=mlp) / $(
    value real/first citer task=csqa kv=f16 policy=never) - 1)") % more."
says results "$(figure '%.0f' "100 * ($(right mlp) / $(right never) - 1)") % more of them are right than without, with $(
    percent '%.2f %%' real/first routed task=csqa kv=f16 policy=mlp) of the tokens"
exact=$(percent '%.1f %%' real/first accuracy task=csqa kv=f32 policy=context)
says results "gets $exact; \`mlp\` gets $(percent '%.1f %%' real/first accuracy task=csqa kv=f32 policy=mlp)"
letters=$(unpacked $results/real/chat/slot.csv | sed -n 2,101p | awk -F, '{ n += $10 } END { print n }')
says results "is right in $letters of the same 100 questions"

# The demo's headline in README.md is a mean over trainings.
demo() { # COLUMN ROUTER: of edge-0.5, in percent
    percent '%.1f' rivals "$1" edge=edge-0.5 "router=$2"
}
says . "raises accuracy from $(demo accuracy never) % to $(demo accuracy mlp) %"
says . "by $(figure '%.0f' "100 * ($(demo accuracy mlp) / $(demo accuracy never) - 1)") %, with $(demo routed mlp) % of the tokens from the cloud"
says . "of $(demo accuracy_low mlp) to $(demo accuracy_high mlp)"
says results "$(figure '%.0f' "100 * ($(demo accuracy mlp) / $(demo accuracy never) - 1)") % more with $(demo routed mlp) %: $(demo accuracy mlp) % ($(demo accuracy_low mlp) to $(demo accuracy_high mlp)) beside $(demo accuracy never) %"
of_paper() { sed -n "$1p" $results/$made/claims.csv | cut -d , -f "$3" | awk '{ printf "'"$2"'", 100 * $1 }'; } # LINE FORMAT FIELD
for made in report real; do
    more="$(of_paper 2 %.0f 4) % more"
    says results "mlp: $more ($(of_paper 2 %.0f 5) to $(of_paper 2 %.0f 6)) with\
 $(of_paper 3 %.2f 4) % ($(of_paper 3 %.2f 5) to $(of_paper 3 %.2f 6))"
done
of_ways() { sed -n "s,^<tr><td>$1</td><td>6.0</td><td>[0-9.]*</td><td>\([0-9]*\).0</td>.*,\1,p" $results/real/report.html; } # WAY
says results "(\`context\`), which needs no hidden state, has $(of_ways context) % right for a reader, \`mlp\` $(of_ways mlp) %"
says results "By CITER's rule $(sed -n 's,.* of the tokens \([0-9]*\).0 % of mlp .*,\1,p' $results/real/report.html) % are right beside $(
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
heads() { # TABLE COLUMN FORMAT: of combined, mlp and mix
    for head in combined mlp mix; do
        case $1 in
        choice) percent "$3 " real/choice "$2" form=reason head=$head width=$([ $head = combined ] && echo 32 || echo 64) ;;
        *) percent "$3 " real/choice-loop "$2" score=citer policy=$([ $head != mix ] || echo mlp=)$head ;;
        esac
    done | sed 's/ /, /; s/ \([^ ]*\) $/ and \1/'
}
says results "hold $(heads choice caught %.1f) % of the wrong ones"
says results "they have $(heads loop accuracy %.1f) % right, which closes $(heads loop pgr %.0f) % of the gap"
points="$(percent '%.1f' real/choice-loop difference score=citer policy='mlp=mix') points, has an interval from"
points="$points $(percent '%.1f' real/choice-loop difference_low score=citer policy='mlp=mix') to"
says results "$points $(percent '%.1f' real/choice-loop difference_high score=citer policy='mlp=mix')"

in_form() { # FORM [TABLE]: keep the rows of the real pair in it
    form=chat task=csqa
    [ "$1" != reason ] || form="plain @$(sha256sum tools/results/real/reason.txt | cut -c 1-17)"
    case $1 in arc | gsm8k) task=$1 ;; esac
    unpacked "$results/real/${2:-figures}.csv" | awk -F, -v OFS=, -v task=$task -v form="$form" '
        NR > 1 && $1 == task && $2 == form { $2 = "this" } { print }' >"$dir/real.csv"
}

asked() { results=$dir value real questions form=this "policy=$1" score=citer against=; } # POLICY
as_read() { # POLICY FORMAT COLUMN [AGAINST]
    results=$dir percent "$2" real "$3" form=this policy="$1" score=answer "against=${4:-}"
}

of() { # POLICY FORMAT COLUMN [AGAINST]: of a row in the form that is kept
    results=$dir percent "$2" real "$3" form=this policy="$1" score=citer "against=${4:-}"
}

# The main table: what each policy has right in each form, its interval, and what it routes.
for form_of in reason chat arc gsm8k; do
    in_form $form_of
    awk -F, 'NR == 1 || $4 != "mlp.1" || $5 == 0.05' "$dir/real.csv" >"$dir/one.csv"
    mv "$dir/one.csv" "$dir/real.csv"
    for policy in never random query entropy max-prob oracle position mlp.1 context combined mlp=mix mlp=mix-lower always slot; do
        name=${policy#mlp=} name=${name%.1} cell=' |'
        if grep -q ",this,[^,]*,$policy,[^,]*,citer," "$dir/real.csv"; then
            case $policy in
            never) routed=0 ;;
            always) routed=100 ;;
            slot) routed=one ;;
            *) routed=$(of $policy %.2f routed) && [ "$(asked $policy)" = "$(asked never)" ] || routed=$routed* ;;
            esac
            cell=" $(of $policy %.1f accuracy) ($(of $policy %.1f accuracy_low)-$(of $policy %.1f accuracy_high)) $routed |"
        fi
        [ -e "$dir/row.$name" ] || printf '| %s |' "$name" >"$dir/row.$name"
        printf %s "$cell" >>"$dir/row.$name"
    done
done
for row in "$dir"/row.*; do says results "$(cat "$row")"; done

in_form chat
more="makes $(of mlp=mix %.0f relative_gain) % more answers right"
says results "ids makes $(of context %.0f relative_gain) % more with $(of context %.1f routed) % and closes $(
    of context %.0f pgr) % of the gap ($(of context %.0f pgr_low) to $(of context %.0f pgr_high))"
equal() { # POLICY AGAINST [SIGN]: what it has more at an equal share
    echo "$(of "$1" %.1f equal "$2")${3:-} ($(of "$1" %.1f equal_low "$2") to $(of "$1" %.1f equal_high "$2"))"
}
level() { level=$(equal "$1" "$2") && level=${level% (*}${3:-:}\ ${level#* (} && echo "${level%)}"; } # POLICY AGAINST [WORD]
between=$(equal context mlp=mix)
says results "\`max-prob\` has $(of max-prob %.0f relative_gain) % more right and closes $(of max-prob %.0f pgr) % of the gap ($(
    of max-prob %.0f pgr_low) to $(of max-prob %.0f pgr_high)) with $(of max-prob %.1f routed) %"
says results "$(of mlp=mix %.0f relative_gain) % more, $(of mlp=mix %.0f pgr) % of the gap ($(of mlp=mix %.0f pgr_low) to $(of mlp=mix %.0f pgr_high)), with $(of mlp=mix %.2f routed) %"
says results "not so: the table is ${between% (*} points above ($(echo "${between#* (}" | tr -d ")"): not shown)"
spread() { # FORM POLICY: of the right answers of its trainings
    unpacked "$results/real/$1/routers.csv" |
        awk -F, -v policy="$2" '$6 == policy { n[$8]++; right[$8] += $9 } END { for (k in n) print 100 * right[k] / n[k] }' |
        sort -n | sed -n '1p; $p' | xargs printf '%.1f to %.1f %%'
}
says results "they have $(spread chat mlp=mix) right"
in_form gsm8k
says results "\`oracle\` has $(of oracle %.0f relative_gain) % more right on $(asked oracle) questions"
says . "mix makes $(of mlp=mix %.0f relative_gain) % more answers right with $(of mlp=mix '%.1f %%' routed) of the tokens"
closes="closes $(of mlp=mix %.0f pgr) % of the gap ($(of mlp=mix %.0f pgr_low) to $(of mlp=mix %.0f pgr_high))"
says results "$(of mlp=mix %.0f relative_gain) % more, ${closes#closes }, with $(of mlp=mix %.2f routed) %"
for rival in max-prob combined; do
    says results "$(of mlp=mix %.1f equal $rival) above \`$rival\` ($(of mlp=mix %.1f equal_low $rival) to $(of mlp=mix %.1f equal_high $rival))"
done
says results "$(of mlp=mix %.1f gain) points ($(of mlp=mix %.1f gain_low) to $(of mlp=mix %.1f gain_high)), where 60 % would be $(
    of never '0.6 * %f' accuracy | { read -r sum && figure %.1f "$sum"; })"
says results "$(of mlp=mix %.1f equal random) points ($(of mlp=mix %.1f equal_low random) to $(of mlp=mix %.1f equal_high random))"
in_form arc
says results "\`mix\` is $(equal mlp=mix combined ' points above `combined`') and $(equal mlp=mix max-prob ' above `max-prob`'): neither is shown"
says results "$(of mlp=mix %.0f relative_gain) % more, $(of mlp=mix %.0f pgr) % of the gap ($(of mlp=mix %.0f pgr_low) to $(of mlp=mix %.0f pgr_high)), with $(of mlp=mix %.2f routed) % |"
says results "As read, it makes $(as_read mlp=mix %.0f relative_gain) % more right and closes $(as_read mlp=mix %.0f pgr) % of the gap ($(
    as_read mlp=mix %.0f pgr_low) to $(as_read mlp=mix %.0f pgr_high))"
in_form reason
says results "It closes $(of oracle '%.0f %%' pgr) of the gap"
says results "closes $(of query '%.0f %%' pgr) of the gap ($(of query %.0f pgr_low) to $(of query %.0f pgr_high)), as much"
says results "and $(equal mlp=mix max-prob | sed 's/ (/ above `max-prob` (/')"
for policy in position context combined mlp=mix mlp=mix-lower combined=joints-combined mlp=joints mlp=joints-lower; do
    name="(${policy#mlp=}) "
    case $policy in
    position | *joints* | *-lower) continue ;;
    esac
    says . "$name| $(of $policy '%.1f %%' accuracy) | $(of $policy '%.1f %%' routed) |"
done
says . "(mix, of more tasks; 400 questions) | $(of "$joint" '%.1f %%' accuracy) | $(of "$joint" '%.1f %%' routed) |"
says . "least sure (max-prob; 400 questions) | $(of max-prob '%.1f %%' accuracy) | $(of max-prob '%.1f %%' routed) |"
says . "| the small model alone | $(of never '%.1f %%' accuracy) | 0 |"
says . "| the large model alone | $(of always '%.1f %%' accuracy) | 100 % |"
says . "no small model (slot) | $(of slot '%.1f %%' accuracy) | one token |"

# The claim: README's sentence and the page's table.
claimed() { # FORMAT POLICY COLUMN [FACTOR]
    awk -F, -v form="$1" -v policy="$2" -v column="$3" -v factor="${4:-100}" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $1 == "measure" && $2 == "long" && $3 == policy { printf form, factor * $at[column] }' "$results/real/claim.csv"
}
claimed_more() { echo "$(claimed %.0f "$1" gain) % ($(claimed %.0f "$1" gain_low) to $(claimed %.0f "$1" gain_high))"; }
says . "from $(claimed %.1f gain-ens never) % to $(claimed %.1f gain-ens right) %, by $(claimed_more gain-ens)"
says . "It does so with $(claimed %.1f gain-ens routed) % of the tokens ($(claimed %.1f gain-ens routed_low) to $(claimed %.1f gain-ens routed_high))"
says . "which has $(claimed %.1f gain-ens always) % right"
for page in . results; do
    says $page "$(claimed %.1f gain-ens above_none) points"
    says $page "(at least $(claimed %.1f gain-ens above_none_low))"
    says $page "$(claimed "%'d" gain-ens questions 1 | sed 's/^\([0-9]\)\([0-9]\{3\}\)$/\1,\2/') questions"
done
says results "never has $(claimed %.1f gain-ens never) % right and always $(claimed %.1f gain-ens always) %"
for policy in gain-ens gain-none-ens combined-ens; do
    says results "| $(claimed %.1f $policy right) % | $(claimed %.2f $policy routed) % ($(claimed %.2f $policy routed_low) to $(claimed %.2f $policy routed_high)) | $(claimed_more $policy) |"
done
above() { # POLICY: how far gain-ens is above it, and the interval
    awk -F, -v of="$1" '$1 "," $2 "," $3 "," $4 == "measure,long,gain-ens," of {
        printf "%.1f points (%.1f to %.1f)", 100 * $5, 100 * $6, 100 * $7 }' "$results/real/above.csv"
}
says results "above position by $(above position)"
says results "level with combined-ens: $(above combined-ens)"
says results "| $(claimed %.1f position right) % | $(claimed %.2f position routed) % | $(claimed_more position) |"
closes() { echo "closes $(of "$1" %.0f pgr) % of the gap ($(of "$1" %.0f pgr_low) to $(of "$1" %.0f pgr_high))"; } # POLICY
says results "With one token in eighteen \`mix\` makes $(of mlp=mix %.0f relative_gain) % more answers right"
says results "With one in twenty \`mix-lower\` makes $(of mlp=mix-lower %.0f relative_gain) % more answers right"
points() { above=$(equal "$1" "$2") && echo "${above% (*} points above${3:-} (${above#* (}"; } # POLICY AGAINST [NAME]
says results "level with \`combined\` ($(level mlp=mix combined))"
gap_of() { echo "$(of "$1" %.0f pgr) % ($(of "$1" %.0f pgr_low) to $(of "$1" %.0f pgr_high)), with $(of "$1" %.2f routed) %"; } # POLICY
says results "interval: $(gap_of mlp=mix); $(gap_of mlp=mix-lower) |"
says results "hangs on the method: with $(of mlp=mix %.2f routed) % $(points mlp=mix context | sed 's/ above//'), with $(
    of mlp=mix-lower %.2f routed) % $(points mlp=mix-lower context | sed 's/ above//'); as first"
says results "not shown: $(equal mlp=mix-lower combined | sed 's/ / points /') |"
says results "| $(of slot %.1f accuracy) % beside $(of always %.1f accuracy) % |"
gap=$(of always %.1f gain)
closed=$(of position %.0f pgr) low=$(of position %.0f pgr_low) high=$(of position %.0f pgr_high)
says results "The gap between the models is $gap points"
says results "closes $closed % of the gap ($low to $high)"

# One that reads the hidden state alone, at several shares.
for row in 'chat 0.05' 'reason 0.05' 'reason 0.07'; do
    share=${row#* } form_of=${row% *}
    in_form "$form_of"
    awk -F, -v share="$share" 'NR == 1 || ($2 == "this" && $4 == "mlp.1" && $5 == share)' "$dir/real.csv" >"$dir/mlp.csv"
    of_mlp() { results=$dir percent "$1" mlp "$2" score=citer against=; } # FORMAT COLUMN
    case $row in
    'chat 0.05')
        says results "$(of_mlp %.0f relative_gain) % more with $(of_mlp %.2f routed) %; as a reader takes the answers $(
            results=$dir percent %.0f mlp relative_gain score=answer against=) % more"
        ;;
    'reason 0.05') says . "(mlp; 400 questions) | $(of_mlp '%.1f %%' accuracy) | $(of_mlp '%.1f %%' routed) |" ;;
    esac
done


# The columns of Table 1, beside the paper's.
awk -F, '
    FNR == 1 { for (i in at) delete at[i]; for (i = 1; i <= NF; i++) at[$i] = i; next }
    FILENAME ~ /measured/ && $at["ahead"] == 0 {
        row[$at["threshold"] + 0] = sprintf("| %.2f | %s | %s | %s | %s |", $at["threshold"],
            $at["routed"], $at["edge_s"], $at["cloud_s"], $at["overall_s"])
    }
    $1 == "printed" { t = $2 + 0; print row[t], $3, "|", $8, "|" }' \
    $results/real/paper.measured.csv $results/paper.csv >"$dir/rows"
grep '^| 0[.][45789][02] ' "$dir/rows" | grep -v '^| 0.70' >"$dir/printed"
while IFS= read -r row; do says results "$row"; done <"$dir/printed"
[ "$(wc -l <"$dir/printed")" -eq 5 ] || fails
says results "$(awk '$2 == "0.50" { print $10, "s with", $4, "%; the paper\x27s devices, without KV cache,", $14, "s with", $12, "%" }' "$dir/rows") |"

# One router for all.
for form_of in chat reason arc gsm8k; do
    in_form $form_of
    row="| $form_of |"
    for policy in "$joint" mlp=without-$task combined=joint-combined; do
        row="$row $(of "$policy" %.1f accuracy), $(of "$policy" %.2f routed), $(of "$policy" %.0f pgr) ($(
            of "$policy" %.0f pgr_low) to $(of "$policy" %.0f pgr_high)) |"
    done
    says results "$row"
done
says results "makes $(of mlp=without-gsm8k %.0f relative_gain) % more right there with $(of mlp=without-gsm8k %.1f routed) % of the tokens, $(
    equal mlp=without-gsm8k random ' points above `random`')"
for form_of in reason chat arc; do
    in_form $form_of
    above=$(equal "$joint" combined=joint-combined)
    case $form_of in
    reason) says results "it is ${above% (*} points above \`joint-combined\` (${above#* (}" ;;
    chat) says results "In \`chat\` it is ${above% (*} above (${above#* (}, " ;;
    arc) says results "on ARC ${above% (*} above (${above#* (}." ;;
    esac
done

# The second plan and the third: on all questions, and on those that had not been asked.
in_form reason
all=$(points mlp=joints-lower combined=joints-combined)
says results "makes $(of mlp=joints-lower %.0f relative_gain) % more answers right and $(closes mlp=joints-lower) with $(of mlp=joints-lower '%.1f %%' routed)"
in_form reason unasked
for policy in never context combined mlp=mix combined=joints-combined mlp=joints always; do
    routed=$(of "$policy" %.2f routed) closes="$(of "$policy" %.0f pgr) ($(
        of "$policy" %.0f pgr_low)-$(of "$policy" %.0f pgr_high))" above=''
    case $policy in
    never) routed=0 closes='' ;;
    always) routed=100 closes='' ;;
    mlp=joints) ;;
    *) above=$(equal mlp=joints "$policy") ;;
    esac
    says results "| ${policy#*=} | $(of "$policy" %.1f accuracy) ($(of "$policy" %.1f accuracy_low)-$(
        of "$policy" %.1f accuracy_high)) | $routed |${closes:+ $closes} |${above:+ $above} |"
done
says results "\`joints-lower\`: $(of mlp=joints-lower '%.1f %%' accuracy) right with $(of mlp=joints-lower '%.2f %%' routed)"
lower=$(equal mlp=joints-lower combined=joints-combined)
says results "hangs on the method: ${lower% (*} points (${lower#* (}, with $(of mlp=joints-lower %.2f routed) %, as first computed -0.2 to 4.0; on all 1,221 questions ${all% points above (*} (${all#*(} |"
says results "not shown: $(equal mlp=joints-lower combined | sed 's/ / points /') |"
context=$(equal mlp=joints-lower context)
says results "it is above \`context\` by $context"
says results "interval: $(gap_of mlp=joints) |"
facts() { value real/facts "$2" "policy=$1"; } # POLICY COLUMN
says results "never has $(facts never right) right, gain-ens $(facts gain-ens right), the router that ships $(
    facts joint right), always $(facts always right)."

# Each number in router/results/README.md is one of the tables that its section names, as it is or
# as a percentage, or a mean of it over seeds, or stands in the section's command or in the script
# that made them, or in the list below, with what it is. A number may have another's cell by chance;
# but sentences that are older than their table do not pass.
#
# SECTION|NUMBER|WHAT: what is computed by t_figures.sh, or from two numbers, or is no result.
cat >"$dir/others" <<'LIST'
results|160|things in the demo world, of all seeds (tools/lab/demo/world.h)
Claims|28.15|the paper's, above
Claims|660|minutes
Claims|710|the same
The paper in|47|of real/report.html, above
The paper in|18|the same
The paper in|57|the same
The paper in|52|the same
Paper|2504.07878|its number at arXiv
A real pair|86|more right answers, above
The whole development set|32.5|the least of five trainings, above
The whole development set|64|32B / 0.5B
The whole development set|94,809|samples of GSM8K's collection
One router for all|149,739|tokens of four collections
Frozen|610|the first digits of a commit
Network|2.56|511 / 200
Tasks|490|questions of all kinds but one (tools/results/tasks.sh)
LIST

# Print the tables and scripts of a section, which is on stdin.
sources() {
    grep -o '\(real\|report\)/[a-z0-9.-]*\.csv\(\.gz\)\{0,1\}\|[a-z][a-z0-9.-]*\.csv\|drawn/[a-z0-9.-]*\.svg' |
        sed 's,^drawn/,,; s/\.gz$//; s/\.[a-z]*$//' | awk '{ print; if (sub(/-.*/, "")) print }' | sort -u |
        while read -r name; do
            for file in $results/$name.csv $results/drawn/$name.csv tools/results/$name.sh; do
                [ ! -e "$file" ] || echo "$file"
            done
            [ ! -e "$results/$name.csv.gz" ] || {
                unpacked "$results/$name.csv" >"$dir/table.$(basename "$name").csv" && echo "$dir/table.$(basename "$name").csv"
            }
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
