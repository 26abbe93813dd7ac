#!/bin/sh
# comma_locale.sh DIR - make the locale "comma" in DIR, for LOCPATH: numbers have a decimal comma and
# all else is as in C. It needs localedef, which comes with glibc, and neither root nor the sources
# of other locales. Ends with status 1 if the locale cannot be made.
cat >"$1/comma.charmap" <<'EOF'
<code_set_name> ANSI_X3.4-1968
<escape_char> /
CHARMAP
<U0000>..<U007F> /x00
END CHARMAP
EOF
cat >"$1/comma.source" <<'EOF'
LC_NUMERIC
decimal_point ","
thousands_sep "."
grouping 3;3
END LC_NUMERIC
EOF
# The other categories are missing, which localedef reports by its status, too.
localedef -c -f "$1/comma.charmap" -i "$1/comma.source" "$1/comma" >/dev/null 2>&1
[ -f "$1/comma/LC_NUMERIC" ]
