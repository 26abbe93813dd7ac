/* unicode_check.js - compare `mizzle tokenize` with Hugging Face's library on all of Unicode.
 *
 *     npm install --prefix DIR tokenizers@0.23.2
 *     NODE_PATH=DIR/node_modules node tests/model/unicode/unicode_check.js build/mizzle
 *
 * The vocabulary is the 256 bytes and merges that are possible only inside one word: a letter joins
 * the "a" before it; white space joins the newline after it; anything that is neither of these nor
 * a number joins the "!" after it. The ids therefore show each code point's class. Marks on both
 * sides of it show the order that NFC gives them. */
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const { spawnSync } = require('child_process');
const { Tokenizer } = require('tokenizers');

const SHOWN = 20;
const QWEN2 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" +
    ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';

/* Return GPT-2's letter for each byte. */
function byteLetters() {
    let free = 256;
    return Array.from({ length: 256 }, (_, b) => {
        const plain = (b > 32 && b < 127) || (b > 160 && b < 173) || b > 173;
        return String.fromCodePoint(plain ? b : free++);
    });
}

function description() {
    const letter = byteLetters(), vocab = {}, merges = [];
    letter.forEach((l, b) => { vocab[l] = b; });
    const merge = (a, b) => {
        vocab[letter[a] + letter[b]] = 256 + merges.length;
        merges.push([letter[a], letter[b]]);
    };
    for (let lead = 0xc2; lead < 0xf5; lead++)
        merge(0x61, lead);
    for (let last = 0; last < 0xc0; last++)
        [0x0a, 0x21].forEach((mark) => merge(last, mark));
    return {
        version: '1.0',
        added_tokens: [],
        normalizer: { type: 'NFC' },
        pre_tokenizer: { type: 'Sequence', pretokenizers: [
            { type: 'Split', pattern: { Regex: QWEN2 }, behavior: 'Isolated', invert: false },
            { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
        ] },
        model: { type: 'BPE', vocab, merges },
    };
}

async function main(mizzle) {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'unicode-check-'));
    const model = JSON.stringify(description()), library = Tokenizer.fromString(model);
    fs.writeFileSync(path.join(dir, 'tokenizer.json'), model);
    let count = 0, bad = 0;
    for (let from = 0; from < 0x110000; from += 0x4000) {
        if (from >= 0x40000 && from !== 0xe0000 && from !== 0x10c000)
            continue; /* Only private-use code points are assigned there. */
        const texts = [];
        for (let code = from; code < from + 0x4000; code++) {
            const c = String.fromCodePoint(code);
            if (code < 0xd800 || code > 0xdfff)
                texts.push(`a${c}\n.a${c}!.q\u0323${c}\u0301.q\u0301${c}\u0323.\u{11935}${c}.q${c}\n`);
        }
        const run = spawnSync(mizzle, ['tokenize', '-m', dir],
            { input: texts.join(''), maxBuffer: 1 << 28, encoding: 'utf8' });
        const found = run.stdout.trim(), want = (await library.encode(texts.join(''))).getIds();
        count += texts.length;
        if (run.status === 0 && found === want.join(' '))
            continue;
        for (const text of texts) { /* Find which ones differ, until SHOWN of them are found. */
            if (bad === SHOWN)
                break;
            const one = spawnSync(mizzle, ['tokenize', '-m', dir], { input: text, encoding: 'utf8' });
            const ids = (await library.encode(text)).getIds().join(' ');
            if (one.stdout.trim() === ids)
                continue;
            bad++;
            console.log(`U+${text.codePointAt(1).toString(16)}: expected ${ids}\n` +
                `    found ${one.stdout.trim()}${one.stderr}`);
        }
    }
    fs.rmSync(dir, { recursive: true });
    console.log(`${count} code points, ${bad < SHOWN ? bad : SHOWN + ' or more'} differ from tokenizers ` +
        require('tokenizers/package.json').version);
    process.exit(bad ? 1 : 0);
}

main(process.argv[2] || 'build/mizzle');
