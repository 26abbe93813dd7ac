#!/bin/sh
# What is said of the code exists: identifiers and files named in comments and READMEs. Prose of
# READMEs ends at 100 columns, as code does; tables and code blocks may be wider, and the code in
# them is checked by the tests that run it.
set -u
sources=$(find kernels weights model net router tools tests -name '*.[ch]')
readmes=$(find README.md kernels weights model net router tools tests -name '*.md')
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# Names of other projects, files and systems that comments may mention.
cat >"$tmp/foreign" <<END
hidden_states conf_model route_extract_answer extract_math_answer src/utils/io_format.py
create_error_response n_embd scale_w scale_x FEAT_DotProd FEAT_I8MM HWCAP2_I8MM NFC_Quick_Check White_Space
llama_ftype cblas.h ggml.h app.c app.py
stop_reason service_tier kv_transfer_params total_retractions reasoning_tokens has_new_line stopping_word
END

# Comments go to one file, as "file:line:text", all else to another. A string may hold what looks
# like a comment.
awk -v comments="$tmp/comments" -v code="$tmp/code" '
    FNR == 1 { inside = 0 }
    {
        line = $0; said = ""; done = ""
        while (line != "") {
            if (inside) {
                at = index(line, "*/")
                said = said " " (at ? substr(line, 1, at - 1) : line)
                line = at ? substr(line, at + 2) : ""
                inside = !at
            } else if (match(line, /\/\*|\/\/|"([^"\\]|\\.)*"|\047([^\047\\]|\\.)+\047/)) {
                mark = substr(line, RSTART, 2)
                done = done substr(line, 1, RSTART - 1) " "
                if (mark == "/*") {
                    inside = 1
                } else if (mark == "//") {
                    said = said " " substr(line, RSTART + 2)
                    RLENGTH = length(line)
                } else {
                    done = done substr(line, RSTART, RLENGTH)
                }
                line = substr(line, RSTART + RLENGTH)
            } else {
                done = done line
                line = ""
            }
        }
        if (said != "") print FILENAME ":" FNR ":" said >comments
        if (done != "") print done >code
    }' $sources
# Blocks of code in READMEs, fenced or indented by four, are not prose. An indented line is code if
# an empty line or other code precedes it; otherwise it continues a list item.
awk '
    FNR == 1 { fenced = code = 0; empty = 1 }
    /^ *```/ { fenced = !fenced; code = empty = 0; next }
    fenced { next }
    /^[[:space:]]*$/ { empty = 1; next }
    { code = /^    / && (empty || code); empty = 0 }
    !code { print FILENAME ":" FNR ":" $0 }' $readmes >"$tmp/prose"
cat "$tmp/prose" >>"$tmp/comments"

git ls-files 2>/dev/null >"$tmp/files" && [ -s "$tmp/files" ] ||
    find . -type f | sed 's,^\./,,' >"$tmp/files"
{
    grep -ohE '[A-Za-z_][A-Za-z0-9_]*' "$tmp/code" Makefile tools/*.sh tools/*/*.sh tests/*.sh tests/*/*.sh
    tr ' ' '\n' <"$tmp/foreign"
    sed 's,.*/,,; s,\..*,,' "$tmp/files"
} | sort -u >"$tmp/names"
awk -v names="$tmp/names" -v files="$tmp/files" '
    BEGIN {
        while ((getline n <names) > 0) is_name[n] = 1
        while ((getline f <files) > 0) {
            is_file[f] = 1
            while (sub(/^[^\/]*\//, "", f)) is_file[f] = 1
        }
    }
    {
        match($0, /:[0-9]+:/)
        where = substr($0, 1, RSTART + RLENGTH - 2)
        text = substr($0, RSTART + RLENGTH)
        while (match(text, /[A-Za-z0-9_*\/.-]*[A-Za-z0-9_][A-Za-z0-9_*\/.-]*(\(\))?/)) {
            word = substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
            sub(/[.\/-]+$/, "", word)
            if (word ~ /NAME/) {
                continue
            } else if (word ~ /^[A-Za-z0-9_\/]+\.(c|h|sh|py|js)$/) {
                if (!is_file[word] && !is_name[word]) { print where ": no file " word; bad = 1 }
            } else if (word ~ /^[A-Za-z_][A-Za-z0-9_]*\(\)$/ ||
                       word ~ /^[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]*[A-Za-z0-9]$/) {
                sub(/\(\)$/, "", word)
                if (!is_name[word]) { print where ": nothing is named " word; bad = 1 }
            }
        }
    }
    END { exit bad }' "$tmp/comments" || bad=1

awk '
    {
        match($0, /:[0-9]+:/)
        n = length($0) - RSTART - RLENGTH + 1
        if (n > 100 && substr($0, RSTART + RLENGTH, 1) != "|") {
            print substr($0, 1, RSTART + RLENGTH - 1) " " n " columns of prose, at most 100"
            bad = 1
        }
    }
    END { exit bad }' "$tmp/prose" || bad=1
exit "${bad:-0}"
