#!/bin/sh
# Measure this machine, and write its table and its row into kernels/SPEED.md: make speed
#
# Usage: sh tools/speed.sh [path of mizzle]
#
# $MODELS: GGUF files that are measured beside random weights of Qwen2.5-0.5B's shape.
# $LLAMA_BENCH: a peer's llama-bench with its options, such as "ik/llama-bench -rtr 1 -fa 1", which
# takes turns with mizzle on the files. $ROUNDS: turns of each (3). $TYPES, $PROMPT, $TOKENS, $DEPTH,
# $THREADS, $SHAPE: what is measured. $SPEED: the file (kernels/SPEED.md).
#
# A speed is the median of all turns; a share of the memory's speed is that of the probe beside it.
case ${1:-} in -h | --help) sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit ;; esac
set -eu
export LC_ALL=C
mizzle=${1:-build/mizzle}
page=${SPEED:-kernels/SPEED.md} shape=${SHAPE:-qwen2.5-0.5b}
prompt=${PROMPT:-512} tokens=${TOKENS:-64} depth=${DEPTH:-4096} rounds=${ROUNDS:-3}
fail() { echo "speed.sh: $*" >&2 && exit 1; }
[ -x "$mizzle" ] || fail "$mizzle: no such program; 'make' builds it"
for line in 'make speed' 'end of make speed'; do
    grep -q "^<!-- $line -->$" "$page" || fail "$page: expected a line <!-- $line -->, found none"
done
[ -w "$page" ] || fail "$page: cannot be written"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
# Take the quotes off fields, and the commas out of them.
plain() {
    awk '{ for (line = ""; match($0, /"[^"]*"/); $0 = substr($0, RSTART + RLENGTH)) {
               field = substr($0, RSTART + 1, RLENGTH - 2)
               gsub(/[,;]/, " ", field)
               line = line substr($0, 1, RSTART - 1) field }
           print line $0 }'
}

# Print LABEL;WHO;TEST;TOKENS A SECOND;SHARE;DOUBT;PRODUCTS for each row of a benchmark's CSV.
rows() { # LABEL WHO
    plain | awk -F, -v label="$1" -v who="$2" '
        !seen { if ((seen = /avg_ts/)) for (i = 1; i <= NF; i++) at[$i] = i; next }
        function of(name) { return (name in at) ? $at[name] : "" } # a peer lacks some
        { p = of("n_prompt"); n = of("n_gen"); d = of("n_depth"); t = of("n_texts") + 0
          test = (n > 0 ? "tg" n : "pp" p) (t > 1 ? " x " t : "") (d > 0 ? " @ d" d : "")
          print label ";" who ";" test ";" of("avg_ts") ";" of("of_probe") ";" of("doubtful") ";" of("n_products")
          tests++; bad += !(p + n > 0 && of("avg_ts") > 0) }
        END { exit !tests || bad }' >>"$dir/rows"
}
ours() { # LABEL WHO OPTIONS...: a file's label gets the type of its weights
    label=$1 who=$2
    shift 2
    "$mizzle" bench model -t "$threads" -r 3 -o csv "$@" >"$dir/csv" || exit
    [ "$label" != "${label%;*}" ] || label="$label;$(plain <"$dir/csv" | awk -F, 'END { print $3 }')"
    rows "$label" "$who" <"$dir/csv" || fail "bench model: expected rows, found none"
}

twice=$(for file in ${MODELS:-}; do basename "$file" .gguf; done | sort | uniq -d | head -n 1)
[ -z "$twice" ] || fail "MODELS: expected files of different names, found two $twice"

# shellcheck disable=SC2086
"$mizzle" bench limits ${THREADS:+-t $THREADS} -o csv >"$dir/csv" || exit
plain <"$dir/csv" >"$dir/limits"
threads=$(awk -F, '/^clock/ { print $3 }' "$dir/limits")

for round in $(seq "$rounds"); do
    [ ! -t 2 ] || printf '\rturn %d of %d ' "$round" "$rounds" >&2
    for type in ${TYPES-q8_0 q4_0 q4_k_m bf16 f32}; do
        case $type in
        f32)
            for set in '' $("$mizzle" info | sed -n 's/^sets .*\(blas\).*/\1/p'); do
                ours "$shape;$type" "${set:-mizzle}" ${set:+--isa "$set"} --shape "$shape" --type f32 -p "8,64,$prompt" -n 0
            done
            continue
            ;;
        q8_0)
            ours "$shape;$type" mizzle --shape "$shape" -p 0 -n 32 --parallel 1,4,8
            ours "$shape;$type" mizzle --shape "$shape" -p 0 -n 32 -d "$depth"
            ;;
        esac
        ours "$shape;$type" mizzle --shape "$shape" --type "$type" -p "$prompt" -n "$tokens"
    done
    for file in ${MODELS:-}; do
        ours "$(basename "$file" .gguf)" mizzle -m "$file" -p "$prompt" -n "$tokens"
        [ "${LLAMA_BENCH:-}" ] || continue
        # shellcheck disable=SC2086 # a program and its options
        $LLAMA_BENCH -m "$file" -t "$threads" -p "$prompt" -n "$tokens" -r 3 -o csv >"$dir/csv" 2>"$dir/err" ||
            fail "$LLAMA_BENCH: $(tail -n 1 "$dir/err")"
        rows "$label" peer <"$dir/csv" ||
            fail "$LLAMA_BENCH: expected the columns n_prompt, n_gen and avg_ts, found $(head -n 1 "$dir/csv")"
        build=$(sed -n '/^build_commit,/{n;s/^"\{0,1\}\([^",]*\).*/, build \1/p;}' "$dir/csv")
    done
done
[ ! -t 2 ] || printf '\r\033[K' >&2

cpu=$("$mizzle" info | sed -n 's/^cpu *//p')
number=$(sed -n 's/^model[[:space:]]*: */, model /p; /^model name/q' /proc/cpuinfo 2>/dev/null || true)
set=$("$mizzle" info | sed -n 's/^chosen *//p')
today=$(date -u +%Y-%m-%d) name="$cpu$number, $threads threads"
turns="$rounds turns" && [ "$rounds" -gt 1 ] || turns="one turn"
{
    echo "### $name"
    echo
    echo "$today, mizzle $("$mizzle" --version | sed 's/^mizzle //'), set $set," \
        "$turns.${LLAMA_BENCH:+ The peer is \`$(basename "${LLAMA_BENCH%% *}")${LLAMA_BENCH#"${LLAMA_BENCH%% *}"}\`${build:-}.}" \
        "$(awk -F, '
            { all = $5 }
            /^(read from memory|f32|int8)/ && $7 != "" { doubt = "; doubtful" }
            /^read from memory/ { memory = all }
            /^clock/ { clock = $4 }
            /^f32/ && all > f32 { f32 = all }
            /^int8/ && all > int8 { int8 = all }
            END { printf "Memory is read at %s GB/s; at most %s GFLOP/s of f32, %s GOP/s of int8; %s GHz%s.", memory, f32, int8, clock, doubt }' \
            "$dir/limits")" | fold -s -w 100 | sed 's/ *$//'
    echo
    awk -F';' -v out="$dir/row" -v first="| $name | $today | $set" -v random="$shape" \
        -v tests="tg$tokens pp$prompt" '
        FILENAME ~ /limits$/ { split($0, f, ",")
            if (/^read from memory/) memory = f[5]
            if (/^f32/ && f[5] > f32) f32 = f[5]
            if (/^int8/ && f[5] > int8) int8 = f[5]
            if (/^(f32|int8)/ && f[7] != "") unsure = 1
            next }
        $8 != "" { macs[$1] = $8 }
        { row = $1 ";" $2 ";" $4; if (!(row in known)) { known[row] = ++rows; named[rows] = row }
          key = row ";" $3; speed[key, ++count[key]] = $5; share[key, count[key]] = $6; if ($7 != "") doubt[row] = $7 }
        function median(of, key,    i, j, n, v, x) {
            for (i = 1; i <= count[key]; i++) if (of[key, i] != "") v[++n] = of[key, i] + 0
            for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] < v[j - 1]; j--) { x = v[j]; v[j] = v[j - 1]; v[j - 1] = x }
            return n ? (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2 : ""
        }
        function round3(x) { return x == "" ? "" : x >= 100 ? sprintf("%.0f", x) : sprintf("%.3g", x) }
        function limit(name,    part, of, unit, peak) { # "93 % memory"
            split(name, part, ";")
            of = median(share, name ";mizzle")
            of = of != "" ? sprintf("%.0f %% memory", 100 * of) : ""
            unit = tolower(part[2]) ~ /f32|bf16|f16/ ? "f32" : "int8"
            peak = unit == "f32" ? f32 : int8
            if (part[3] ~ /^pp/ && peak && macs[part[1]])
                of = sprintf("%.0f %% %s", 200 * macs[part[1]] * median(speed, name ";mizzle") / 1e9 / peak, unit)
            return of (name in doubt || unsure && part[3] ~ /^pp/ ? ", doubtful" : "")
        }
        function cell(name,    of) { # "127, 78 %"
            of = limit(name)
            sub(/ (memory|int8)/, "", of)
            return " | " round3(median(speed, name ";mizzle")) (name in known ? ", " of : "")
        }
        function cells(test) { # Q8_0, Q4_K_M, and the least and the most beside a peer
            return cell(random ";q8_0;" test) cell(random ";q4_k_m;" test) " | " \
                (test in least ? sprintf("%.2f to %.2f", least[test], most[test]) : "")
        }
        END {
            print "| weights | test | mizzle, tokens/s | of the limit | other, tokens/s | mizzle / other |"
            print "|---|---|---|---|---|---|"
            for (r = 1; r <= rows; r++) {
                split(named[r], part, ";")
                us = median(speed, named[r] ";mizzle")
                peer = median(speed, named[r] ";peer"); blas = median(speed, named[r] ";blas")
                if (peer != "") {
                    if (!(part[3] in least) || us / peer < least[part[3]]) least[part[3]] = us / peer
                    if (us / peer > most[part[3]]) most[part[3]] = us / peer
                }
                other = peer != "" ? peer : blas
                printf "| %s | %s | %s | %s | %s | %s |\n", part[1] (part[2] != "" ? ", " toupper(part[2]) : ""), part[3], round3(us), limit(named[r]), \
                    other == "" ? "" : (peer != "" ? "" : "OpenBLAS ") round3(other), other == "" ? "" : sprintf("%.2f", us / other)
            }
            split(tests, test, " ")
            print first " | " memory cells(test[1]) cells(test[2]) " |" >out
        }' "$dir/limits" "$dir/rows"
    echo
} >"$dir/section"

# The section takes the place of the one before. The row comes first; the processor's old one goes.
awk -v section="$dir/section" -v row="$(cat "$dir/row")" -v name="| $name |" '
    /^<!-- make speed -->$/ { inside = 1 }
    /^<!-- end of make speed -->$/ { while ((getline line <section) > 0) print line; inside = 0 }
    inside && /^### / { inside = 2 }
    inside == 2 || inside && index($0, name) == 1 { next }
    { print }
    inside && /^[|]---/ { print row }' "$page" >"$dir/page"
cat "$dir/page" >"$page"
tail -n +3 "$dir/section"
