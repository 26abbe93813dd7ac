# shellcheck shell=sh disable=SC2034,SC1091
# above - how far the routers by gain are above each other policy of claim.sh, at that one's share.
. tools/results/claim.sh
TABLE=real/above
HEADER=part,form,policy,other,above,above_low,above_high
jobs() { job claim_rows above; }
draws() { :; }
