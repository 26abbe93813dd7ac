/* tokenizer_speed.js - time `mizzle tokenize` and Hugging Face's engine side by side, and compare
 * their ids.
 *
 *     npm install --prefix DIR tokenizers@0.23.2
 *     NODE_PATH=DIR/node_modules node tests/model/unicode/tokenizer_speed.js MIZZLE FOLDER [TEXT]
 *
 * FOLDER holds vocab.json and merges.txt of a Qwen2. Without the file TEXT, 4 MB are made up of
 * prose, code, numbers and several scripts. Mizzle's time is that of the program with the text less
 * that with one byte, so it includes reading the text and printing the ids; the engine's is that of
 * one call. The best of three rounds counts for each. */
'use strict';
const fs = require('fs');
const path = require('path');
const { spawnSync } = require('child_process');
const { Tokenizer } = require('tokenizers');

const QWEN2 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" +
    ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';

function description(folder) {
    const merges = fs.readFileSync(path.join(folder, 'merges.txt'), 'utf8').split('\n')
        .filter((line, i) => line && !(i === 0 && line.startsWith('#version')));
    return JSON.stringify({
        version: '1.0',
        added_tokens: [],
        normalizer: { type: 'NFC' },
        pre_tokenizer: { type: 'Sequence', pretokenizers: [
            { type: 'Split', pattern: { Regex: QWEN2 }, behavior: 'Isolated', invert: false },
            { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
        ] },
        model: { type: 'BPE', vocab: JSON.parse(fs.readFileSync(path.join(folder, 'vocab.json'))),
            merges },
    });
}

/* Lines of eight kinds with words and numbers that do not repeat. */
function madeUp(bytes) {
    const kinds = [
        (a, b) => `The ${a} of a ${b} isn't what it was; we'd say ${a}${b} then.\n`,
        (a, b, n) => `    if (${a}_${b}[${n}] != 0x${n.toString(16)}) { return ${a}(${b}, ${n}); }\n`,
        (a, b, n) => `${n},${n * 7},${(n / 13).toFixed(3)};${a}\t${b}\r\n`,
        (a) => `在${a}这个问题上,我们需要更多的时间和数据。\n`,
        (a, b) => `Größe, été, mañana: ${a} — «${b}» naïve cafe\u0301\n`,
        (a, b, n) => `Быстрая ${a} лисица ${n} прыгает через ${b}.\n`,
        (a, b) => `{"${a}": ["${b}", null, true], "emoji": "😀👩‍🔬"}\n`,
        (a) => `مرحبا ${a} שלום हिन्दी ไทย 日本語テキスト\n\n\n`,
    ];
    let state = 14, out = [], size = 0;
    const next = (n) => (state = (state * 48271) % 2147483647) % n;
    const word = () => Array.from({ length: 2 + next(8) },
        () => 'etaoinshrdlucmfwypvbgk'[next(22)]).join('');
    while (size < bytes) {
        const line = kinds[next(8)](word(), word(), next(1000000));
        size += Buffer.byteLength(line);
        out.push(line);
    }
    return out.join('');
}

async function main(mizzle, folder, file) {
    const text = file ? fs.readFileSync(file, 'utf8') : madeUp(4 << 20);
    const library = Tokenizer.fromString(description(folder));
    const seconds = () => Number(process.hrtime.bigint()) / 1e9;
    const run = (input) => {
        const begin = seconds();
        const { stdout, status } = spawnSync(mizzle, ['tokenize', '-m', folder],
            { input, maxBuffer: 1 << 30, encoding: 'utf8' });
        return { time: seconds() - begin, ids: status === 0 ? stdout.trim() : 'failed' };
    };
    let ours = Infinity, open = Infinity, theirs = Infinity, same = true, count = 0;
    for (let round = 0; round < 3; round++) {
        const begin = seconds(), want = (await library.encode(text)).getIds();
        theirs = Math.min(theirs, seconds() - begin);
        const one = run('x'), all = run(text);
        open = Math.min(open, one.time);
        ours = Math.min(ours, all.time);
        count = want.length;
        same = same && all.ids === want.join(' ');
    }
    ours -= open;
    console.log(`${Buffer.byteLength(text)} bytes, ${count} ids, ${same ? 'the same' : 'which DIFFER'}: ` +
        `Mizzle ${ours.toFixed(3)} s, tokenizers ${require('tokenizers/package.json').version} ` +
        `${theirs.toFixed(3)} s, ${(theirs / ours).toFixed(1)} times as long`);
    process.exit(same ? 0 : 1);
}

main(process.argv[2], process.argv[3], process.argv[4]);
