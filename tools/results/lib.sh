# shellcheck shell=sh disable=SC2034
# lib.sh - what the experiments of tools/results.sh may use. A field of a table holds no comma and
# no quotation mark.

mizzle() { "${mizzle:?}" "$@"; }

python=${PYTHON:-/usr/bin/python3}
numpy() { "$python" -c 'import numpy' 2>/dev/null; } # true if it is there

# Run a program of tools/lab/study; without numpy, leave the job out.
with_numpy() { # NAME.py ARGS...
    numpy || { echo "no numpy for $python (sh tools/setup.sh lab)" >&2 && exit 77; }
    study_program=$1
    shift
    OPENBLAS_NUM_THREADS=1 "$python" -B "${root:-.}/tools/lab/study/$study_program" "$@"
}
study() { with_numpy figures.py "$@"; } # compute figures from kept answers
items_of() { "$python" -B tools/lab/study/answers.py items "$@"; } # JOURNAL...: print lines of items

# Print a list of policies in which each with a router of its own has it N times, FILE.1 to FILE.N.
trainings_of() { # N POLICY,POLICY,...
    echo "$2" | tr , '\n' | awk -v n="$1" '
        /^(mlp|combined|context|query)=/ && n > 1 { for (i = 1; i <= n; i++) print $0 "." i; next }
        { print }' | paste -s -d , -
}

# Answers are kept in SET/NAME.csv. Packed, those of all names are in SET/answers.csv.gz: question after
# question, with their name in front, and `=` for a field that is that of the line above.
in_pack() { # FOLDER: print the lines of its pack in full
    [ ! -e "$1/answers.csv.gz" ] || gzip -cd "$1/answers.csv.gz" |
        awk -F, -v OFS=, '{ for (i = 1; i <= NF; i++) if ($i == "=") $i = was[i]; else was[i] = $i; print }'
}
names_in() { # FOLDER: print the names of its answers
    { in_pack "$1" | sed '1d; s/,.*//' && find "$1" -maxdepth 1 -name '*.csv' | sed 's,.*/,,; s/[.]csv$//'; } | sort -u
}
is_kept() { [ -e "$1" ] || gzip -cd "${1%/*}/answers.csv.gz" 2>/dev/null | grep -q "^$(basename "$1" .csv),"; } # FILE
unpacked() { # FILE: print a table, which may be compressed in FILE.gz, or answers, from the pack too
    if [ -e "${1%/*}/answers.csv.gz" ]; then
        {
            in_pack "${1%/*}" | awk -v name="$(basename "$1" .csv)," '
                index($0, name) == 1 || NR == 1 { line[n++] = substr($0, index($0, ",") + 1) }
                END { for (i = 0; n > 1 && i < n; i++) print line[i] }'
            [ ! -e "$1" ] || cat "$1"
        } | awk '!known[$0]++'
    elif [ -e "$1.gz" ]; then
        gzip -cd "$1.gz"
    elif [ -e "$1" ]; then
        cat "$1"
    fi
}

# Move the answers of a folder into its pack. Its answers stay where a step fails.
pack() { # FOLDER
    pack_to=$1/answers.csv.gz
    set -- "$1"/*.csv
    [ -e "$1" ] || return 0
    {
        in_pack "${pack_to%/*}" | sed 1d
        for file; do sed "1d; s/^/$(basename "$file" .csv),/" "$file"; done
    } | awk -F, '!($5 in at) { at[$5] = NR } !known[$0]++ { print at[$5] "\t" $0 }' >"$dir/lines" &&
        sort -k 1,1n -k 2 -o "$dir/lines" "$dir/lines" && { sed '1s/^/name,/; q' "$1" && cut -f 2- "$dir/lines"; } | awk -F, -v OFS=, '
            { for (i = 1; i <= NF; i++) if ($i "" == was[i] "") $i = "="; else was[i] = $i; print }' |
        gzip -9n >"$pack_to.new" && gzip -t <"$pack_to.new" && mv "$pack_to.new" "$pack_to" && rm "$@"
}

# Print a log whose commands are joined by `;` with one command a step, without what the step's name
# says, and with the range of all its questions.
short_log() {
    awk '
        !/"$/ { print; next }
        {
            at = index($0, "\"")
            n = split(substr($0, at + 1, length($0) - at - 1), command, ";")
            begin = end = line = ""
            for (i = 1; i <= n; i++)
                if (match(command[i], /--first [0-9]+:[0-9]+/)) {
                    split(substr(command[i], RSTART + 8, RLENGTH - 8), range, ":")
                    if (begin == "" || range[1] < begin + 0) begin = range[1] + 0
                    if (range[1] + range[2] > end + 0) end = range[1] + range[2]
                }
            words = split(command[1], word, " ")
            for (i = 1; i <= words; i++) {
                if (word[i] ~ /^(mizzle|-q|--json)$/) continue
                if (word[i] == "--first" && begin != "") { line = line " --first " begin ":" end - begin; i++; continue }
                if (word[i] ~ /^(-m|-n|-o|--(data|task|prompt|cloud-model|cloud-url|jsonl|items|calibration|first|count))$/) { i++; continue }
                gsub(/[^ =@,]*\/|[.]safetensors/, "", word[i])
                line = line " " word[i]
            }
            print substr($0, 1, at) substr(line, 2) "\""
        }'
}

# Pick columns of the table on stdin by name and print them without the header. NAME=VALUE is a
# column that has this value in each row.
columns() { # COL,COL,...
    awk -F, -v want="$1" '
        NR == 1 {
            for (i = 1; i <= NF; i++) at[$i] = i
            n = split(want, name, ",")
            for (k = 1; k <= n; k++)
                if (name[k] !~ /=/ && !(name[k] in at)) fail("no column " name[k])
            next
        }
        {
            row = ""
            for (k = 1; k <= n; k++) {
                value = name[k]
                if (!sub(/^[^=]*=/, "", value)) value = $at[name[k]]
                row = row (k > 1 ? "," : "") value
            }
            print row
        }
        END { if (NR < 2 && !bad) fail("no rows"); exit bad }
        function fail(why) { print "columns: " why >"/dev/stderr"; bad = 1; exit }'
}

# Print columns of the table that a command of mizzle prints, if the command succeeds.
tabulate() { # COL,COL,... COMMAND...
    tabulate_columns=$1
    shift
    mizzle "$@" >"${here:?}/table.csv" && columns "$tabulate_columns" <"$here/table.csv"
}

# Options for every command that collects or calibrates: on a busy machine a call may take long, and a
# token that falls back to the edge would be another row. Keys and values are in f32, as they were for
# the rows that are there.
patient="--cloud required --cloud-timeout 600000 --kv f32"

# Run `mizzle eval` in one thread and print these columns of its results (tools/lab/study/table.py).
# --target-routed LOW:HIGH:N asks at N shares, --repeats N with FILE.1 to FILE.N of each router that
# is named. Where columns compare with never and always, these are asked, too, unless a URL is given.
# Answers are in $here/answers.1, .2, ... A policy without a router has its own name in column `router`.
evaluate() { # COL,COL,... OPTIONS...
    evaluate_columns=$1 evaluate_share='' evaluate_against='' evaluate_repeats=1 evaluate_policy='' evaluate_ends=''
    shift
    case ,$evaluate_columns, in *gain* | *pgr*) evaluate_ends=${here:?}/ends ;; esac
    evaluate_left=$#
    while [ "$evaluate_left" -gt 0 ]; do
        case $1 in
        --target-routed | --against | --repeats | --policy)
            case $1 in
            --target-routed) evaluate_share=$2 ;;
            --against) evaluate_against=$2 ;;
            --repeats) evaluate_repeats=$2 ;;
            --policy) evaluate_policy=$2 ;;
            esac
            shift
            evaluate_left=$((evaluate_left - 1))
            ;;
        *) set -- "$@" "$1" ;;
        esac
        case $1 in --cloud-url) evaluate_ends='' ;; esac
        shift
        evaluate_left=$((evaluate_left - 1))
    done
    evaluate_policy=$(trainings_of "$evaluate_repeats" "$evaluate_policy")
    numpy || { echo "no numpy for $python (sh tools/setup.sh lab)" >&2 && exit 77; }
    rm -f "${here:?}"/answers.* "$here/ends"
    [ -z "$evaluate_ends" ] || evaluate_ask "$here/ends" --policy never,always "$@" || return
    evaluate_number=0
    for share in $(echo "${evaluate_share:-none}" | awk -F: '
        NF < 3 { print; exit } { for (i = 0; i < $3; i++) printf "%.7g\n", $1 + ($2 - $1) * i / ($3 - 1) }'); do
        evaluate_number=$((evaluate_number + 1))
        [ "$share" != none ] || share=
        evaluate_ask "$here/answers.$evaluate_number" --policy "$evaluate_policy" ${share:+--target-routed "$share"} "$@" || return
    done
    set --
    while [ "$evaluate_number" -gt 0 ]; do
        set -- "$here/answers.$evaluate_number" "$@"
        evaluate_number=$((evaluate_number - 1))
    done
    with_numpy table.py ${evaluate_ends:+--ends "$evaluate_ends"} ${evaluate_against:+--against "$evaluate_against"} "$@" >"$here/eval.csv" &&
        awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
            NR > 1 && ($at["router"] == "" || $at["router"] ~ /^edge-.*[.]safetensors$/) { $at["router"] = $at["policy"] } { print }' \
            "$here/eval.csv" >"$here/named.csv" &&
        columns "$evaluate_columns" <"$here/named.csv"
}

evaluate_ask() { # JOURNAL OPTIONS...
    evaluate_journal=$1
    shift
    mizzle eval -q -t 1 --parallel 1 --kv f32 --jsonl "$evaluate_journal" "$@" >/dev/null
}

# Serve the large model at $url until the job ends.
serve() {
    "${mizzle:?}" cloud --port 0 -t 1 2>"$here/cloud" &
    serve_process=$!
    trap 'kill $serve_process' EXIT
    url=
    while [ -z "$url" ]; do
        sleep 0.05
        kill -0 $serve_process
        url=$(sed -n 's/^listening on \(http:.*\)$/\1/p' "$here/cloud")
    done
}

# Leave out this job, aloud: its rows in the table stay. They are those with VALUE in column COL.
skip() { # COL=VALUE REASON
    echo "$2" >&2
    skip_from=${results:?}/${TABLE:?}${part?}.csv
    [ ! -f "$skip_from" ] ||
        awk -F, -v header="${header:?}" -v column="${1%%=*}" -v kept="${1#*=}" '
            NR == 1 {
                for (i = 1; i <= NF; i++) if ($i == column) at = i
                if ($0 == header && at) next
                print FILENAME ": its rows cannot stay: other columns, or no " column >"/dev/stderr"
                exit 1
            }
            $at "" == kept' "$skip_from" || exit 1
    exit 77
}

# Print a value of constants.csv, which has the columns name,value,unit,source.
constant() { value constants value "name=$1"; }

# Print column COL of the one row of TABLE.csv in which all conditions hold.
value() { # TABLE COL NAME=VALUE...
    value_table=$1 value_column=$2
    shift 2
    unpacked "$results/$value_table.csv" | awk -F, -v table="$value_table" -v column="$value_column" -v conditions="$*" '
        NR == 1 {
            for (i = 1; i <= NF; i++) at[$i] = i
            n = split(conditions, condition, " ")
            next
        }
        {
            for (k = 1; k <= n; k++) {
                eq = index(condition[k], "=")
                if ($at[substr(condition[k], 1, eq - 1)] != substr(condition[k], eq + 1)) next
            }
            found = $at[column]
            rows++
        }
        END {
            if (rows != 1 || !(column in at)) {
                print table ".csv: " rows + 0 " rows, or no column " column ": " conditions \
                    >"/dev/stderr"
                exit 1
            }
            print found
        }' || fails
}

# Print the value of an expression of awk, as in: figure '%.1f' "100 * $x". For titles.
figure() { # FORMAT EXPRESSION
    awk "BEGIN { printf \"$1\", $2 }" || fails
}

# Let the whole run fail: nobody sees the status of a command inside a title.
fails() {
    rm -f "${dir:?}/fine"
    return 1
}

# Print a table of what an awk program prints for each row of TABLE.csv. In it, of(NAME) is a field of
# the row, and percent(NAME) 100 times it. HEADER names the columns, which are those of the picture:
# an axis has the name of its column.
shape() { # TABLE HEADER PROGRAM
    unpacked "$results/$1.csv" | awk -F, -v OFS=, -v header="$2" -v table="$1" '
        function of(name) {
            if (name in at) return $at[name]
            print table ".csv: no column " name >"/dev/stderr"
            exit bad = 1
        }
        function percent(name) { return of(name) == "" ? "" : 100 * of(name) }
        END { if (bad) exit 1 }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; print header; next }
        '"$3" || fails
}

# Read a table of label,case,x,y. Print for each label and case the means of x and y, and the lowest
# and the highest y, as columns low and high.
means() {
    awk -F, -v OFS=, '
        NR == 1 { print $1, $3, $4, "low", "high"; next }
        {
            key = $1 FS $2
            if (!(key in n)) { order[++keys] = key; label[key] = $1; low[key] = high[key] = $4 }
            n[key]++
            x[key] += $3
            y[key] += $4
            if ($4 < low[key]) low[key] = $4
            if ($4 > high[key]) high[key] = $4
        }
        END {
            for (i = 1; i <= keys; i++) {
                key = order[i]
                print label[key], x[key] / n[key], y[key] / n[key], low[key], high[key]
            }
        }'
}

# Draw a picture of the table on stdin, with the options of study/plots.py.
plot() { # NAME.svg OPTIONS...
    plot_to=${plots:?}/$1
    shift
    "$python" -B "${root:-.}/tools/lab/study/plots.py" "$@" -o "$plot_to" - || fails
}

# Print the date, and the name of the processor without commas, for measured rows.
today() { date -u +%Y-%m-%d; }
processor() { mizzle info | sed -n 's/^cpu *//p' | tr -d ',"' | tr -s ' '; }
