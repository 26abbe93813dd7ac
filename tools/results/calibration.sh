# shellcheck shell=sh disable=SC2034
# calibration - thresholds are found on other questions: which share do they route on these?
HEADER=policy,target,questions,seed,routed,accuracy,accuracy_low,accuracy_high

calibration_policy() { # POLICY
    evaluate policy,target,questions,seed,routed,accuracy,accuracy_low,accuracy_high \
        --questions 40 --policy "$1" --target-routed 0.05
}

jobs() {
    for policy in random max-prob; do job calibration_policy $policy; done
}
