#!/bin/sh
# What lowers calls, on the command line with the demo pair: limits, private text.
. tests/support/demo_pair.sh
ask="run --question 1 --policy always --json"

# Limits give the same tokens for any --ahead.
for cap in '--max-cloud-tokens 7' '--max-cloud-input 200'; do
    anew
    for ahead in 0 1; do
        alike tokens $ask --ahead $ahead $cap
        [ "$(field fallback)" -gt 0 ] && [ "$(field capped)" -eq "$(field fallback)" ] ||
            fail "$cap: no token is held back"
        [ "$(field cloud)" -gt 1 ] || fail "$cap: no token from the cloud"
    done
done
expect 0 $ask --max-cloud-tokens 7
[ "$(field cloud)" -eq 7 ] || fail "--max-cloud-tokens 7"
expect 0 $ask --max-cloud-tokens 0
[ "$(field cloud)" -eq 0 ] && [ "$(field calls)" -eq 0 ] || fail "--max-cloud-tokens 0"
# With eight tokens per call a limit still holds, and no call is made while one is in flight.
for ahead in 0 1; do
    expect 0 $ask -n 24 --cloud-tokens 8 --ahead $ahead --max-cloud-tokens 10
    [ "$(field cloud)" -eq 10 ] && [ "$(field committed)" -eq 2 ] || fail "10 tokens, ahead $ahead"
    expect 0 run --question 5 --policy always --json -n 24 --cloud-tokens 8 --ahead $ahead
    [ "$(field committed)" -eq 3 ] && [ "$(field calls)" -le 4 ] || fail "8 tokens: calls, $ahead"
done
# The probe takes its part first, whatever the dialect is known to be.
start_cloud
for cap in 80 92 95; do
    anew
    for _ in 1 2 3 4 5 6 7 8; do
        alike calls run --question 2 --policy always --json -n 12 --cloud-api openai --cloud-url "$url" \
            --max-cloud-input $cap
    done
done
stop_cloud
each 'refused 2 $ask' '--max-cloud-input -1' '--max-cloud-tokens x'

# From private text on, nothing is sent.
echo Question >"$dir/patterns"
expect 0 $ask --private-file "$dir/patterns"
[ "$(field calls)" -eq 0 ] && [ "$(field private)" -eq "$(field tokens)" ] || fail "a private prompt"
printf '# the answer\nanswer is\n' >"$dir/patterns"
anew
for ahead in 0 1; do
    alike tokens $ask --private-file "$dir/patterns" --ahead $ahead --answers "$dir/private$ahead"
    [ "$(field private)" -gt 0 ] && [ "$(field cloud)" -gt 0 ] || fail "--private-file"
done
same "$dir/private0" "$dir/private1" # the same calls
expect 3 $ask --private-file "$dir/none"
printf '# nothing\n' >"$dir/patterns"
refused 3 $ask --private-file "$dir/patterns"
