/* inert.js - shows text that a model wrote. Both pages use it, of serve and of explain.
 *
 * Such text reaches the document as text nodes only. Characters that are invisible, or that would
 * reorder what follows, are replaced by a name in a frame; piles of combining marks are cut. */
'use strict';

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;
const MARKS_SHOWN = 8,
    CHARS_SHOWN = 400;

function make(tag, className, text) {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
}

const CONTROLS = (
    'NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB ' +
    'CAN EM SUB ESC FS GS RS US'
).split(' ');

/* The name of a character that cannot be seen. */
function nameOf(c) {
    const n = c.codePointAt(0);
    return CONTROLS[n] || 'U+' + n.toString(16).toUpperCase().padStart(4, '0');
}

/* Split text into [kind, string]: text, nl (a newline) or ctl (a name that stands for something).
 * state.marks counts combining marks in a row, across tokens. */
function pieces(text, state = { marks: 0 }, most = CHARS_SHOWN) {
    if (/^[\x20-\x7e]+$/.test(text)) {
        state.marks = 0;
        if (text.length <= most) return [['text', text]];
    }
    const out = [];
    let plain = '',
        marks = 0,
        shown = 0,
        left = 0;
    const end = () => {
        if (plain) out.push(['text', plain]);
        if (marks) out.push(['ctl', `+${marks} mark${marks === 1 ? '' : 's'}`]);
        plain = '';
        marks = 0;
    };
    for (const c of text) {
        const mark = /\p{M}/u.test(c);
        state.marks = mark ? state.marks + 1 : 0;
        if (state.marks > MARKS_SHOWN) {
            marks++;
        } else if (shown++ >= most) {
            left++;
        } else if (c === '\n' || (HIDDEN.test(c) && c !== '\u200c' && c !== '\u200d')) {
            end();
            out.push(c === '\n' ? ['nl', c] : ['ctl', nameOf(c)]);
        } else {
            if (marks) end();
            plain += c;
        }
    }
    end();
    if (left) out.push(['ctl', `+${left} character${left === 1 ? '' : 's'}`]);
    return out;
}

/* Text in one line, for labels. */
function spoken(text) {
    return pieces(text)
        .map(([kind, s]) => (kind === 'nl' ? '↵' : s))
        .join('');
}
