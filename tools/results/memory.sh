# shellcheck shell=sh disable=SC2034,SC2154
# memory - what models of 0.5B to 7B take in memory, by type of weights, type of keys and values,
# and context; and what a process takes in fact.
HEADER=shape,type,kv,context,weights,kv_cache,work,router,sum
MEASURED=shape,type,kv,prompt,sum,peak,date,processor
SHAPES='qwen2.5-0.5b qwen2.5-1.5b qwen2.5-3b qwen2.5-7b'

memory_rows() { # SHAPE
    for type in q4_0 q8_0 bf16 f32; do
        for kv in q8 f16 f32; do
            tabulate $HEADER \
                bench memory --shape "$1" --type $type --kv $kv -c 512,4096,32768 -o csv
        done
    done
}

jobs() {
    for shape in $SHAPES; do job memory_rows "$shape"; done
}

memory_measured() { # SHAPE: a prompt of 128 tokens, weights in q4_0
    sum=$(tabulate sum bench memory --shape "$1" --type q4_0 -c 128 -o csv)
    free=$(awk '/^MemAvailable/ { printf "%.0f", 1024 * $2 }' /proc/meminfo 2>/dev/null || echo 0)
    awk "BEGIN { exit !($sum + 1e9 < ${free:-0}) }" ||
        skip "shape=$1" "$1 takes $sum bytes, and ${free:-0} are free"
    mizzle bench model --shape "$1" --type q4_0 -p 128 -n 0 -r 1 -o csv >"$here/quoted"
    awk -F'"' -v OFS= '{ for (i = 2; i <= NF; i += 2) gsub(/,/, " ", $i) } { $1 = $1 } 1' \
        "$here/quoted" >"$here/model"
    peak=$(columns peak_bytes <"$here/model")
    echo "$1,q4_0,f16,128,$sum,$peak,$(today),$(processor)"
}

measures() {
    for shape in $SHAPES; do job memory_measured "$shape"; done
}

memory_share() { # SHAPE: of the KV cache, in percent
    row="shape=$1 type=q4_0 kv=f16 context=32768"
    # shellcheck disable=SC2086
    figure %.0f "100 * $(value memory kv_cache $row) / $(value memory sum $row)"
}

draws() {
    shape memory "model,part,memory (GiB)" '
        function part(name, column) { print model, name, of(column) / 1024 / 1024 / 1024 }
        of("type") == "q4_0" && of("kv") != "f32" && of("context") == 32768 {
            model = of("shape")
            if (of("kv") == "q8") part("weights", "weights")
            part("keys and values " of("kv"), "kv_cache")
            if (of("kv") == "f16") part("work memory", "work")
            if (of("kv") == "f16") part("router", "router")
        }' |
        plot memory.svg --by model --bars part --y "memory (GiB)" \
            --title "Memory with weights in 4 bits and room for 32,768 tokens: the keys and values (f16)\
 are $(memory_share qwen2.5-0.5b) % of the sum for Qwen2.5-0.5B, $(memory_share qwen2.5-7b) % for 7B" \
            --note "Computed. Keys and values are either in q8 or in f16."
}
