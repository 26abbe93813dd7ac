#!/bin/sh
# What -m may be: names in Hugging Face's cache and types of GGUF files mean the same to every
# command, to the lookup of routers and to the stand-in cloud. No command looks at a network.
. tests/support/demo_pair.sh
repository=$dir/home/.cache/huggingface/hub/models--Org--Demo-GGUF
commit=0123456789abcdef0123456789abcdef01234567
mkdir -p "$repository/refs" "$repository/blobs" "$repository/snapshots/$commit" || fail "no cache"
printf %s $commit >"$repository/refs/main"
cp weights/milli/edge-0.1.gguf "$repository/blobs/aa"
cp weights/milli/cloud.gguf "$repository/blobs/bb"
ln -s ../../blobs/aa "$repository/snapshots/$commit/demo-q4_k_m.gguf"
ln -s ../../blobs/bb "$repository/snapshots/$commit/demo-q8_0.gguf"
ln -s ../../blobs/cc "$repository/snapshots/$commit/demo-f16.gguf" # not downloaded
HOME=$dir/home
export HOME
unset HF_HOME HF_HUB_CACHE XDG_CACHE_HOME
edge=Org/Demo-GGUF:Q4_K_M
cloud=Org/Demo-GGUF:Q8_0

# says TEXT: the one line on stderr has this text.
says() {
    [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -qF -- "$1" "$dir/err" || fail "no \"$1\": $(cat "$dir/err")"
}

expect 0 run --question 3 -m weights/milli/edge-0.1.gguf --policy never -n 20
cp "$dir/out" "$dir/first"
expect 0 run --question 3 -m $edge --policy never -n 20
cmp -s "$dir/out" "$dir/first" || fail "run: another text"
expect 0 tokenize -m $edge -p "a question"
expect 0 info $edge
expect 0 convert $edge "$dir/x.gguf" --type f16
expect 0 logits -m $edge --ids 1,2 -o "$dir/l.f32"
expect 0 bench model -m $edge -p 8 -n 2 --repeats 1
expect 0 run -m $edge -p x -n 2 --policy always --cloud required --cloud-model $cloud
expect 0 eval --questions 1 -m $edge --cloud-model $cloud --policy never

grep -q 'cloud off: no router beside' "$dir/err" && fail "eval --policy never: the cloud is off"
MIZZLE_DEMO=$dir expect 0 run -m $edge -p x -n 2 --cloud-model $cloud
grep -q 'cloud off: .*; --policy entropy needs none$' "$dir/err" || fail "what to do: $(cat "$dir/err")"

# A router beside the repository suits every snapshot and type; one beside the file goes first.
fails 2 "no router beside $edge" run -m $edge -p x -n 2 --policy mlp --cloud-model $cloud
cp weights/milli/edge-0.1.router.safetensors "$repository/router.safetensors"
expect 0 run -m $edge -p x -n 2 --policy mlp --cloud-model $cloud
cp Makefile "$repository/snapshots/$commit/demo-q4_k_m.router.safetensors"
fails 3 demo-q4_k_m.router.safetensors run -m $edge -p x -n 2 --policy mlp --cloud-model $cloud

# One that comes with the program is found by the model's fingerprint, after both, and is named.
mkdir -p "$dir/come/milli" "$dir/come/routers"
expect 0 info $edge
fingerprint=$(sed -n 's/^fingerprint *//p' "$dir/out")
cp weights/milli/edge-0.1.router.safetensors "$dir/come/routers/$fingerprint.router.safetensors"
MIZZLE_DEMO=$dir/come/milli
export MIZZLE_DEMO
expect 3 run -m $edge -p x -n 2 --cloud-model $cloud
comes() { # FILE: info names this router
    expect 0 info $edge && grep -q "^router  *.*/$1\$" "$dir/out" || fail "no $1: $(cat "$dir/out")"
    expect 0 info $edge --json && grep -q "\"router\": *\".*/$1\"" "$dir/out" || fail "json: no $1"
}
comes demo-q4_k_m.router.safetensors
rm "$repository/snapshots/$commit/demo-q4_k_m.router.safetensors"
expect 0 run -m $edge -p x -n 2 --cloud-model $cloud
! grep -q "routers/$fingerprint" "$dir/err" || fail "not the one beside it: $(cat "$dir/err")"
comes router.safetensors
rm "$repository/router.safetensors"
comes "$fingerprint.router.safetensors"
for command in run eval; do
    what='-p x -n 2'
    [ $command = run ] || what='--questions 1'
    expect 0 $command $what -m $edge --cloud-model $cloud
    grep -q "routers/$fingerprint.router.safetensors, which this model's fingerprint names: mlp, learnt milli" "$dir/err" ||
        fail "not named: $(cat "$dir/err")"
done
unset MIZZLE_DEMO

# What is missing is said with the command that would fetch it.
for command in "run -p x" "tokenize -p x" "info" "logits --ids 1 -o $dir/l" "serve --port 0" \
    "convert --type f16 $dir/y.gguf" "bench model -p 8" "cloud --port 0"; do
    case $command in
    info*) set -- info Org/None ;;
    convert*) set -- convert Org/None "$dir/y.gguf" --type f16 ;;
    *) set -- $command -m Org/None ;;
    esac
    expect 3 "$@"
    says "Org/None: no such file or folder, and the cache has no $HOME/.cache/huggingface/hub/models--Org--None/refs/main; to fetch it in Mizzle's sources: sh tools/download.sh Org/None"
done
fails 3 "sh tools/download.sh Org/None" run -p x -m $edge --policy always --cloud-model Org/None
fails 3 "found demo-f16.gguf, demo-q4_k_m.gguf, demo-q8_0.gguf" info Org/Demo-GGUF
fails 3 "sh tools/download.sh Org/Demo-GGUF:Q6_K" info Org/Demo-GGUF:Q6_K
fails 3 "sh tools/download.sh Org/Demo-GGUF demo-f16.gguf" info Org/Demo-GGUF:F16
