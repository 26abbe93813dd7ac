#!/bin/sh
# tools/download.sh against a local server that answers as the hub does: it goes on with what was cut
# off, compares hashes, and Mizzle finds by its name what was fetched.
. tests/support/shell.sh
command -v python3 >/dev/null && command -v curl >/dev/null || skip "no python3 or no curl"
export HOME="$dir/home"
unset HF_HOME HF_HUB_CACHE XDG_CACHE_HOME HF_TOKEN
mkdir "$HOME" "$dir/hub"
cp weights/milli/edge-0.1.gguf "$dir/hub/demo-f16.gguf" 2>/dev/null || skip "no demo pair"
echo '{"a": 1}' >"$dir/hub/config.json"
cat >"$dir/server.py" <<'END'
import hashlib, http.server, json, os, re, sys
folder, cut = sys.argv[1], [True]
class Hub(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_HEAD(self): self.do_GET()
    def answer(self, status, headers, body=b''):
        self.send_response(status)
        for name, value in headers.items(): self.send_header(name, str(value))
        self.end_headers()
        if self.command == 'GET': self.wfile.write(body)
    def do_GET(self):
        with open(folder + '/../asked', 'a') as f:
            f.write('%s %s %s %s\n' % (self.command, self.path, self.headers.get('Range'), self.headers.get('Authorization')))
        self.path = re.sub('/Org/D(-[0-9.]+B)?-', '/Org/Demo-', self.path)
        if self.path == '/api/models/Org/Demo-GGUF':
            names = [{'rfilename': n} for n in sorted(os.listdir(folder))]
            return self.answer(200, {}, json.dumps({'siblings': names}).encode())
        if self.path == '/api/models/Org/Endless':
            return self.answer(200, {}, b'{"rfilename":"a"}' * 4000000)
        name = self.path.split('/')[-1]
        if not self.path.startswith(('/Org/Demo-GGUF/resolve/main/', '/cdn/')) or not os.path.exists(folder + '/' + name):
            return self.answer(404, {'Content-Length': 0})
        data = open(folder + '/' + name, 'rb').read()
        head = {'X-Repo-Commit': 'c' * 40}
        if name.endswith('.json'):
            if '/resolve/' in self.path:
                return self.answer(307, dict(head, Location='/cdn/' + name, **{'Content-Length': 262}))
            if 'strange' in name: return self.answer(200, {'Content-Length': len(data)}, data)
            git = hashlib.sha1(b'blob %d\0' % len(data) + data).hexdigest()
            return self.answer(200, dict(head, ETag='"%s"' % git, **{'Content-Length': len(data)}), data)
        if not self.path.startswith('/cdn/'):
            size = '1e3' if name.startswith('digits') else len(data)
            head.update({'X-Linked-Etag': '"%s"' % hashlib.sha256(data).hexdigest(), 'X-Linked-Size': size})
            return self.answer(302, dict(head, Location='/cdn/' + name, **{'Content-Length': 0}))
        first = int((self.headers.get('Range') or 'bytes=0-')[6:].split('-')[0])
        if name.startswith('bad'): data = data[:-1] + b'?'
        if name.startswith('long'): data = data + b'?' * 100000000
        if name.startswith('long-q2') and self.command == 'GET':
            self.close_connection = True
            return self.answer(200, {}, data)
        headers = {'Content-Length': len(data) - first, 'Content-Range': 'bytes %d-%d/%d' % (first, len(data) - 1, len(data))}
        body = data[first:]
        if cut[0] and self.command == 'GET': cut[0], body, self.close_connection = False, body[:1000], True
        self.answer(206 if first else 200, headers, body)
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Hub)
print(server.server_address[1], flush=True)
server.serve_forever()
END
: >"$dir/log"
python3 "$dir/server.py" "$dir/hub" >"$dir/port" 2>>"$dir/log" &
server=$!
trap 'kill $server; rm -rf "$dir"' EXIT
until [ -s "$dir/port" ]; do kill -0 $server || fail "$(cat "$dir/log")"; sleep 0.1; done
export HF_ENDPOINT="http://127.0.0.1:$(cat "$dir/port")"
fetch() { # STATUS TEXT ARGS...: the script's status, and a part of what it says
    status=$1 text=$2
    shift 2
    sh tools/download.sh "$@" >"$dir/out" 2>&1
    found=$?
    [ $found -eq "$status" ] && grep -q -e "$text" "$dir/out" || fail "$*: status $found, $(cat "$dir/out")"
}

fails 3 'sh tools/download.sh Org/Demo-GGUF:F16$' info Org/Demo-GGUF:F16
fetch 1 'demo-f16.gguf: cut off; the same command goes on' Org/Demo-GGUF:F16
fetch 0 'try: .*build/mizzle run --chat -m Org/Demo-GGUF:F16$' Org/Demo-GGUF:F16
grep -q 'GET /cdn/demo-f16.gguf bytes=1000-' "$dir/asked" || fail "began again: $(cat "$dir/asked")"
expect 0 info Org/Demo-GGUF:F16
cmp -s "$dir/hub/demo-f16.gguf" "$HOME"/.cache/huggingface/hub/models--Org--Demo-GGUF/snapshots/*/demo-f16.gguf || fail "another file"
: >"$dir/asked"
fetch 0 done Org/Demo-GGUF:F16
! grep -q GET.*cdn "$dir/asked" || fail "a file that is here was fetched again"
blob=$(find "$HOME" -path '*/blobs/*' ! -name '*.part')
echo more >>"$blob"
fetch 0 'demo-f16.gguf: what is here has another hash' Org/Demo-GGUF:F16
cmp -s "$dir/hub/demo-f16.gguf" "$blob" || fail "a file that is here and wrong stays"
HF_TOKEN=secret fetch 0 done Org/Demo-GGUF config.json
grep -q 'GET /Org.*config.json .*Bearer secret' "$dir/asked" || fail "no token"
cp "$dir/hub/demo-f16.gguf" "$dir/hub/bad-q8_0.gguf"
echo more >>"$dir/hub/bad-q8_0.gguf"
fetch 1 'expected .* bytes with hash .*, found others' Org/Demo-GGUF:Q8_0
cp "$dir/hub/demo-f16.gguf" "$dir/hub/digits-q3.gguf"
fetch 1 'the hub named no commit, hash and size' Org/Demo-GGUF:Q3
# What is longer than the size said is not kept: not where it says so, not where it does not.
for type in Q1 Q2; do
    { cat "$dir/hub/demo-f16.gguf" && echo $type; } >"$dir/hub/long-$(echo $type | tr Q q).gguf"
    fetch 1 'expected .* bytes with hash .*, found others' Org/Demo-GGUF:$type
    wait_for "grep -q '^[A-Za-z]*Error:' '$dir/log'" # the server could not send it all
    : >"$dir/log"
done
fetch 1 'the answer is too long' Org/Endless:Q1
wait_for "grep -q '^[A-Za-z]*Error:' '$dir/log'"
: >"$dir/log"
[ -z "$(find "$HOME" -name '*.part')" ] || fail "a bad part stays"
rm "$dir/hub"/long* "$dir/hub"/digits*
fetch 1 'expected GGUF files with Q4_0 in their names, found bad-q8_0.gguf demo-f16.gguf' Org/Demo-GGUF:Q4_0
fetch 1 'expected a folder of safetensors, found bad' Org/Demo-GGUF
cp "$dir/hub/demo-f16.gguf" "$dir/hub/a b-q5.gguf"
fetch 1 "expected names of letters, .*, found 'a b-q5.gguf'" Org/Demo-GGUF:Q5
fetch 1 'no file none.gguf' Org/Demo-GGUF none.gguf
fetch 1 'no such model' Org/None:F16
HF_ENDPOINT=http://127.0.0.1:1 fetch 1 'http://127.0.0.1:1: not reached$' Org/None:F16
HF_ENDPOINT=http://127.0.0.1:1 fetch 1 'not reached; here already: config.json demo-f16.gguf$' Org/Demo-GGUF:F16
cp "$dir/hub/config.json" "$dir/hub/strange.json"
fetch 1 'the hub named no commit, hash and size' Org/Demo-GGUF strange.json
for wrong in '' Org ../x Org/../x Org/Demo/x 'Org/De mo' 'Org/Demo:F 16' 'Org/Demo:*' -x; do fetch 2 'expected ORG/NAME' "$wrong"; done
fetch 2 'expected ORG/NAME' Org/Demo ../../x
# Two sizes of a model are a pair, whichever came first.
fetch 0 'run --chat -m Org/D-1.5B-GGUF:F16$' Org/D-1.5B-GGUF:F16
for name in 0.5 1.5; do
    fetch 0 'run --chat -m Org/D-0.5B-GGUF:F16 --cloud-model Org/D-1.5B-GGUF:F16$' Org/D-${name}B-GGUF:F16
done
expect 0 $(sed -n 's/.*mizzle \(run.*\)/\1/p' "$dir/out") -p x -n 1
exit 0
