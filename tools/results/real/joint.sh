# shellcheck shell=sh disable=SC2034,SC2154
# joint.sh - steps of the real pair: one router for all tasks, which is found by the small model's
# fingerprint, on these tasks, on one that it has not seen, and on open questions.
joint_sets=${SETS:-chat reason arc gsm8k}
joint=${JOINT:-weights/routers}
open=$work/split/open.jsonl

plan_joint() {
    joins="$width_mix $joint_sets" # all that the joint router depends on
    step split-open 1 '' "$open" open_questions
    for task_set in $joint_sets; do
        read_set $task_set
        joins="$joins $gathers"
    done
    collected=$(echo " $joint_sets" | sed 's/ / collect-/g')
    step train-joint 5 "$collected" "$(joint_file)" train_joint
    for task_set in $joint_sets; do
        read_set $task_set
        measure joint 400 $target joint unseen
        measure joint-combined 400 $target joint-combined
    done
    read_set open # at its own threshold
    measure joint 50 '' joint
    read_set reason # plan.md, "The second plan"
    step train-joints 5 "$collected" "$work/joint/joints.safetensors.$trainings" train_joints
    measure joints $whole $target joints joints-combined
    measure lower $whole 0.045 primary joints # "The third plan"
}

# Write the open questions as items of gsm8k, whose answers nobody looks at.
open_questions() {
    sed 's/.*/{"question": "&", "answer": "#### 0"}/' tools/results/real/open.txt >"$open"
}

joint_file() { # print the path of the joint router
    fingerprint=$("$mizzle" info "$edge" 2>/dev/null | sed -n 's/^fingerprint *//p')
    echo "$joint/${fingerprint:-none}.router.safetensors"
}

joint_samples() { # TASK: print the options for the samples of all sets but this task's
    for task_set in $joint_sets; do
        read_set $task_set
        [ $task = "$1" ] || echo "--samples $work/$set/samples"
    done
}

# Train a router on the samples of all sets, one without those of each task, and one on all of them
# that does not read the hidden state.
train_joint() {
    mkdir -p "$work/joint" "$joint" || return
    for without in none csqa arc gsm8k; do
        list=$(joint_samples $without)
        [ -n "$list" ] || continue
        # shellcheck disable=SC2086
        run router train -q --head mix --width $width_mix $list \
            -o "$work/joint/without-$without.safetensors" >"$work/joint/without-$without.txt" || return
        # shellcheck disable=SC2086
        [ $without != none ] || run router train -q --head combined --width $width_combined $list \
            -o "$work/joint/joint-combined.safetensors" >"$work/joint/joint-combined.txt" || return
    done
    cp "$work/joint/without-none.safetensors" "$(joint_file)"
}

# Train both several times, each time on another draw of their samples.
train_joints() {
    mkdir -p "$work/joint" || return
    list=$(joint_samples none)
    # shellcheck disable=SC2086
    run router train -q --head mix --width $width_mix $list --repeats $trainings \
        -o "$work/joint/joints.safetensors" >"$work/joint/joints.txt" &&
        run router train -q --head combined --width $width_combined $list --repeats $trainings \
            -o "$work/joint/joints-combined.safetensors" >"$work/joint/joints-combined.txt"
}
