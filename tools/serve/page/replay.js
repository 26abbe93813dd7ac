/* replay.js - a page as one file, which shows its texts again without a server, and the playing of
 * what was written at the speed at which it was written. */
'use strict';

/* Return the page with these texts in it. Its policy allows nothing but its own scripts and styles,
 * so that opening it sends no request. */
async function recording(data) {
    const get = async (name) => {
        const reply = await fetch(name);
        if (!reply.ok) throw new Error(`status ${reply.status}`);
        return reply.text();
    };
    const nonce = [...crypto.getRandomValues(new Uint8Array(16))]
        .map((b) => b.toString(16))
        .join('');
    const page = await get('./');
    const names = [...page.matchAll(/<script defer src="([^"]+)">/g)].map((m) => m[1]);
    const scripts = await Promise.all(names.map(get)),
        style = await get('page.css');
    const close = '<' + '/script>',
        json = JSON.stringify(data).replace(/</g, '\\u003c');
    const policy =
        `default-src 'none'; img-src data:; style-src 'nonce-${nonce}'; ` +
        `script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; ` +
        "require-trusted-types-for 'script'; trusted-types 'none'";
    const head = `<meta http-equiv="Content-Security-Policy" content="${policy}">\n<style nonce="${
        nonce
    }">\n${style}</style>`;
    const body =
        `<script type="application/json" id="recording">${json}${close}\n` +
        scripts.map((s) => `<script nonce="${nonce}">\n${s}${close}\n`).join('');
    return page
        .replace(/<script defer.*\n/g, '')
        .replace(/<link rel="stylesheet".*/, () => head)
        .replace('</body>', () => body + '</body>');
}

/* Offer a file. */
function download(name, text) {
    const a = make('a'),
        url = URL.createObjectURL(new Blob([text], { type: 'text/html' }));
    a.href = url;
    a.download = name;
    a.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* The texts in this file, or null on the page of a server. */
function recorded() {
    const data = document.getElementById('recording');
    return data && JSON.parse(data.textContent);
}

class Player {
    /* tick(ms) is called for every frame, with Infinity at the end. */
    constructor(tick) {
        this.tick = tick;
        this.on = false;
    }

    play(views) {
        const begin = performance.now();
        this.on = true;
        views.forEach((v) => v.reset(0));
        const frame = () => {
            const ms = this.on ? performance.now() - begin : Infinity;
            const more = views.map((v) => v.play(ms)).some((m) => m);
            this.on = this.on && more;
            this.tick(this.on ? ms : Infinity);
            if (this.on) requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
    }

    stop() {
        this.on = false;
    }
}
