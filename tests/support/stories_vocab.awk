# stories_vocab.awk - the 512 pieces of llama2.c's tok512.bin as vocab.json, merges.txt and
# tokenizer_config.json of a byte-level BPE, ids unchanged, for engines that read GPT-2's form.
#   od -An -v -tu1 tok512.bin | awk -v dir=FOLDER -f tests/support/stories_vocab.awk
# tok512.bin holds an int32, the longest length, then for each piece a float32 score, an int32
# length and its bytes. Pieces 0 to 2 are unknown, begin and end; 3 to 258 are bytes. A byte that is
# also a piece of its own gets a text of the form <byte-N>.
{
    for (i = 1; i <= NF; i++)
        byte[n++] = $i
}

# Return GPT-2's letter for a byte (run with LC_ALL=C, so that %c is one byte).
function letter(b,   c) {
    if (b >= 33 && b <= 126 || b >= 161 && b <= 172 || b >= 174)
        c = b
    else
        c = 256 + (b <= 32 ? b : b <= 160 ? b - 94 : 67)
    return c < 128 ? sprintf("%c", c) : sprintf("%c%c", 192 + int(c / 64), 128 + c % 64)
}

# Return s as a JSON string.
function quoted(s,   i, c, out) {
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        out = out (c == "\"" || c == "\\" ? "\\" : "") c
    }
    return "\"" out "\""
}

function word(at, len,   s) {
    for (s = ""; len > 0; len--)
        s = s letter(byte[at++])
    return s
}

END {
    for (at = 4; at + 8 <= n; at += 8 + len) {
        len = byte[at + 4] + 256 * byte[at + 5]
        start[ids] = at + 8
        length_of[ids++] = len
    }
    for (id = 259; id < ids; id++) {
        piece[id] = word(start[id], length_of[id])
        known[piece[id]] = 1
    }
    for (b = 0; b < 256; b++) {
        piece[3 + b] = letter(b) in known ? sprintf("<byte-%d>", b) : letter(b)
        known[letter(b)] = 1
    }
    piece[0] = "<unk>"
    piece[1] = "<s>"
    piece[2] = "</s>"
    for (id = 0; id < ids; id++)
        printf "%s%s:%d", id ? "," : "{", quoted(piece[id]), id > (dir "/vocab.json")
    print "}" > (dir "/vocab.json")
    print "#version: 0.2" > (dir "/merges.txt")
    for (id = 259; id < ids; id++)
        for (cut = 1; cut < length_of[id]; cut++) {
            left = word(start[id], cut)
            right = word(start[id] + cut, length_of[id] - cut)
            if (left in known && right in known)
                print left, right > (dir "/merges.txt")
        }
    print "{\"added_tokens_decoder\":{\"0\":{\"content\":\"<unk>\",\"special\":true}," \
          "\"1\":{\"content\":\"<s>\",\"special\":true}," \
          "\"2\":{\"content\":\"</s>\",\"special\":true}},\"eos_token\":\"</s>\"}" \
        > (dir "/tokenizer_config.json")
}
