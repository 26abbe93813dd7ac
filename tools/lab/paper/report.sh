# shellcheck shell=sh disable=SC2034,SC2154
# report.sh - claims.csv and report.html of tools/lab/paper.sh, from the tables in $out.

# Print the share of the cloud's tokens in the answers of a journal whose lines begin like this, and
# its 95 % interval over questions.
share_of() { # JOURNAL POLICY SHARE POINT: of the policy and, if it has several, its trainings
    awk -v policy="^{\"policy\":\"$2([.][0-9]+)?\",\"share\":$3,\"point\":$4," '
        function field(name) { match($0, "\"" name "\":[0-9]+"); return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 }
        $0 ~ policy && /"item":/ {
            n += !((i = field("item")) in t) # trainings answer the same questions
            t[i] += field("tokens"); c[i] += field("cloud"); tokens += field("tokens"); cloud += field("cloud")
        }
        END {
            share = tokens ? cloud / tokens : 0
            for (i in t) square += (c[i] - share * t[i]) ^ 2
            half = n < 30 || !tokens ? 1 : cloud ? 1.959964 * sqrt(square * n / (n - 1)) / tokens : 3 / tokens
            low = share - half
            high = share + half
            printf "%.4f %.4f %.4f\n", share, (low < 0 ? 0 : low), (high > 1 ? 1 : high)
            exit !n
        }' "$out/$1" || fails
}

# Print a row of claims.csv: yes or no where the whole interval says so, else open. A number is how far
# from the value it may be.
claim() { # CLAIM least|below|NUMBER VALUE COMMAND FIGURE LOW HIGH
    awk -v kind="$2" -v value="$3" -v low="$6" -v high="$7" -v row="$1,$3,$4,$5,$6,$7" '
        BEGIN {
            if (low == "") holds = "open"
            else if (kind + 0) {
                out = low > value + kind || high < value - kind
                holds = out ? "no" : low < value - kind || high > value + kind ? "open" : "yes"
            } else {
                above = low + 0 >= value + 0 ? 1 : high + 0 < value + 0 ? 0 : -1
                holds = above < 0 ? "open" : above == (kind == "least") ? "yes" : "no"
            }
            print row "," holds
        }'
}

by_citer() { # POLICY [SHARE]: print how many of the answers are right by CITER's rule, in percent
    awk -v policy="^{\"policy\":\"$1([.][0-9]+)?\",\"share\":${2:-null}," '
        $0 ~ policy && /"right":/ { n++; right += /"citer":true/ }
        END { printf "%.1f", 100 * right / n }' "$out/ways-${2:-0.02}.jsonl" || fails
}

rounded() { awk -v x="$1" 'BEGIN { if (x != "") printf "%.4f", x }'; } # VALUE

# What the paper claims, of this pair.
claims() {
    echo claim,paper,command,figure,low,high,holds
    command="mizzle eval -m $edge $by $large $task $ask"
    for head in mlp mix; do
        here="policy=mlp router=$head target=0.060000"
        way="$command${aside:+ $aside} --target-routed 0.06 --policy mlp=$out/1/$head$first --json${several:+ (mean with .2 to $last)}"
        # shellcheck disable=SC2086
        claim "60 % more right answers at thresholds for 6 % of the tokens ($head)" least 0.6 "$way" "$(
            rounded "$(value ways relative_gain $here)")" "$(rounded "$(value ways relative_gain_low $here)")" "$(
            rounded "$(value ways relative_gain_high $here)")"
        share_of ways-0.06.jsonl "mlp=$head" 0.06 0 >"$out/share"
        read -r share low high <"$out/share"
        claim "less than 7 % of the tokens from the cloud there ($head)" below 0.07 "$way" "$share" "$low" "$high"
    done
    claim "the small model alone is right in about 50 %" 0.1 0.5 "$command --policy never" \
        "$(rounded "$(value ways accuracy policy=never)")" "$(rounded "$(value ways accuracy_low policy=never)")" "$(rounded "$(value ways accuracy_high policy=never)")"
    echo "the small model writes 3.6 tokens per second (0.28 s each on an M1 without KV cache),3.6,mizzle bench model -m $edge -p 0 -n 16 -r 6,,,,speed.csv"
    point=0
    printed | while IFS=, read -r threshold routed rest; do
        share_of table.jsonl "mlp=mlp$first" null $point >"$out/share"
        read -r share low high <"$out/share"
        claim "Table 1: share of the tokens from the cloud at threshold $threshold" 0.01 "$(rounded "$(figure %.6f "$routed / 100")")" \
            "$command --ahead 0 --as-paper --policy mlp=$out/1/mlp$first" "$share" "$low" "$high"
        point=$((point + 1))
    done
    rm -f "$out/share"
}

printed() { # the rows of the paper's Table 1
    sed -n 's/^printed,//p' "$root/router/results/paper.csv"
}

html_table() { # of the comma-separated values on stdin
    awk -F, '
        { gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;") }
        NR == 1 { print "<table>" }
        {
            cell = NR == 1 ? "th" : "td"
            printf "<tr>"
            for (i = 1; i <= NF; i++) printf "<%s>%s</%s>", cell, $i, cell
            print "</tr>"
        }
        END { print "</table>" }'
}

picture() { sed '1s/ xmlns="[^"]*"//' "$plots/$1.svg"; } # NAME: print it for the page

# For the programs of `shape`: a percentage with one digit, an interval of them, the name of a way, and
# of a model without its folder.
say='
    function one(name) { return of(name) == "" ? "" : sprintf("%.1f", percent(name)) }
    function interval(name) { return of(name "_low") == "" ? "" : one(name "_low") " to " one(name "_high") }
    function seconds() { return ('"$edge_ms"' * (of("cloud_answer") + of("edge_answer")) + '"$((latency + cloud_ms))"' * of("calls_answer")) / 1000 }
    function way() { return of("policy") == "mlp" ? of("router") : of("policy") }'
short() { basename "$1" .gguf; }

sizes() { # print the figures of all sizes
    echo edge,way,from the cloud %,right %,low,high,gap closed %,95 %
    size_number=0
    for small in $edges; do
        size_number=$((size_number + 1)) size_table=$size_number/size
        [ $size_number -gt 1 ] || size_table=ways
        shape $size_table '' "$say"'
            of("policy") ~ /^(never|always)$/ || way() == "mlp" && of("target") == "0.060000" {
                print "'"$(short "$small")"'", way(), one("routed"), one("accuracy"), one("accuracy_low"), one("accuracy_high"), one("pgr"), interval("pgr")
            }' | sed 1d
    done
}

pictures() {
    right="answers that are right (%)" share="tokens from the cloud (%)"
    shape thresholds "threshold,$right,low,high" \
        '{ print of("threshold"), percent("accuracy"), percent("accuracy_low"), percent("accuracy_high") }' |
        plot accuracy.svg --x threshold --y "$right" --interval low,high --title "Right answers by threshold"
    shape thresholds "threshold,$share" '{ print of("threshold"), percent("routed") }' |
        plot share.svg --x threshold --y "$share" --title "Tokens from the cloud by threshold"
    shape thresholds "$share,$right,low,high" \
        '{ print percent("routed"), percent("accuracy"), percent("accuracy_low"), percent("accuracy_high") }' |
        plot curve.svg --x "$share" --y "$right" --interval low,high --title "Right answers by tokens from the cloud"
    shape ways "way,$share,$right" "$say"' of("target") != "" { print way(), percent("routed"), percent("accuracy") }' |
        plot ways.svg --x "$share" --y "$right" --by way --title "Ways to divide an answer, at 2, 6 and 10 % of the tokens" \
            --guide "$(figure %.1f "100 * $(value ways accuracy policy=never)")=the small model alone" \
            --guide "$(figure %.1f "100 * $(value ways accuracy policy=always)")=the large model alone"
    shape ways "way,time of an answer (s),$right" "$say"' { print way(), seconds(), percent("accuracy") }' |
        awk '/^(never|always),/ { last = last $0 "\n"; next } { print } END { printf "%s", last }' | # styles as above
        plot times.svg --x "time of an answer (s)" --y "$right" --by way --title "Right answers by the time of an answer, on the paper's devices"
    [ "$number" -eq 1 ] || sizes |
        awk -F, -v OFS=, 'NR == 1 { print "edge", "way", "right (%)", "low", "high"; next } { print $1, $2, $4, $5, $6 }' |
        plot sizes.svg --by edge --bars way --y "right (%)" --interval low,high --title "Sizes of the small model, mlp at 6 % of the tokens"
}

page() {
    cat <<END
<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>The paper, with $(short "$edge") and $(short "$large")</title>
<style>:root{color-scheme:light dark}body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em;line-height:1.4}table{border-collapse:collapse;font-size:85%}th,td{padding:.2em .6em;border-bottom:1px solid #8886;text-align:left}td:not(:first-child){white-space:nowrap}svg{max-width:100%;height:auto}code{overflow-wrap:anywhere}</style>
<h1>The paper, with $(short "$edge") and $(short "$large")</h1>
<p>She et al., "Token Level Routing Inference System for Edge Devices" (arXiv 2504.07878), of which the claims and Table 1
are. $questions questions of $(basename "$data") are measured; routers learned from $learned others, and
thresholds are from $calibrated others again${train:+, which share no question_concept with them}. Intervals are 95 %.
Times are computed, by the rule of the paper's table: $edge_ms ms for each token of an answer, and $((latency + cloud_ms)) ms more
for each call. Made by $("$mizzle" --version), and again by</p>
<p><code>${TRAIN:+TRAIN=$TRAIN }sh tools/lab/paper.sh --questions $questions${several:+ $several} $(echo "$edges" | tr ' ' ,) $large $data $out</code></p>
<h2>Claims of the paper</h2>
$([ "$questions" -ge 30 ] || echo "<p><strong>$questions questions say next to nothing: the intervals tell how little.</strong></p>")
<p>holds: yes or no where the whole interval says so, else open. More right answers with less than 7 % of the tokens are two rows:
the paper's claim holds where both do. About 50 % are 40 to 60; a share of Table 1, whose router is
another, may be a point from the paper's. Tokens per second are below Table 1. claims.csv has the command of each.</p>
$(cut -d , -f 1,2,4- "$out/claims.csv.new" | html_table)
$([ -z "$aside" ] || echo "<p>Right is what a reader takes for the answer. By the rule of CITER's published scores, which finds fewer of them, it
is $(by_citer never) % of never, $(by_citer always) % of always, and at 6 % of the tokens $(by_citer mlp=mlp 0.06) % of mlp and $(by_citer mlp=mix 0.06) % of mix.</p>")
<h2>Table 1</h2>
<p>Seconds for 100 tokens. Printed in the paper, where another router gives another share at the same threshold:</p>
$({ echo "threshold,routed of 100,SLM s,TTFT s,TBT s,communication and LLM s,overall s" && printed; } | html_table)
<p>This pair, each call awaited as there:</p>
$({ echo "threshold,routed of 100,SLM s,TTFT s,TBT s,communication and LLM s,overall s" && sed 1d "$out/table.csv"; } | html_table)
<p>Of this machine alone: $(short "$edge") writes $(sed 1d "$out/speed.csv" | awk -F, '{
    print $3 " tokens per second (" $4 " to " $5 "; " $2 "; " $1 ($6 == "" ? "" : "; doubtful: " $6) ")" }'), the paper's 3.6.</p>
<h2>Figures 6 to 8: what a threshold does</h2>
<p>The paper draws these by threshold and prints no values, so there are none beside ours.</p>
$(for name in accuracy share curve; do picture $name; done)
<h2>Sizes of the small model</h2>
$([ "$number" -gt 1 ] || echo "<p>One pair is one size: name further models, EDGE,EDGE, for a sweep.</p>")
$(sizes | html_table)
$([ "$number" -eq 1 ] || picture sizes)
<h2>Ways to divide an answer</h2>
<p>By the rule of the times above, always has the device compute each token, too, and a call each: a server that writes all of an
answer in one call is not slow like that. mlp is the paper's kind of router, on the hidden state; combined reads confidence, place and a table of the last two ids
(context), mix both. query decides for the whole answer. The difference is that to mlp at an equal share, in points; work is what the large model computes of all
ids.</p>
$(shape ways "way,aimed at %,from the cloud %,right %,95 %,gap closed %,95 %,beside mlp,95 %,calls,work %,s an answer" "$say"'
    { print way(), one("target"), one("routed"), one("accuracy"), interval("accuracy"), one("pgr"), interval("pgr"), one("equal_share"),
        interval("equal_share"), sprintf("%.1f", of("calls_answer")), one("work"), sprintf("%.1f", seconds()) }' | html_table)
$([ -e "$out/1/query$last" ] || echo "<p>query is left out: too few answers to learn from.</p>")
$(picture ways) $(picture times)
<h2>What this does not show</h2>
<p>Each router is ${several:+$repeats trainings, which resample the texts}${single:+one training}. Other models and questions than the paper's; its small model was fine-tuned, its large one has
32B. An accuracy has Wilson's interval, gains and differences a paired bootstrap over questions, a share
the normal one over 30 answers or more; tokens per second have the lowest and highest of six samples. A share was aimed at on other questions, and is missed by some.</p>
</html>
END
}

report() {
    learned=$texts
    [ -z "$train" ] || { learned=$(grep -c . "$out/split/learned.jsonl") && calibrated=$(grep -c . "$out/split/calibrated.jsonl"); }
    : >"$out/fine"
    pictures && claims >"$out/claims.csv.new" && page >"$out/report.new" && [ -e "$out/fine" ] || return 1
    rm "$out/fine" && mv "$out/claims.csv.new" "$out/claims.csv" && mv "$out/report.new" "$out/report.html"
}
