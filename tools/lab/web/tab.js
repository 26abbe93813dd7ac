/* tab.js - what answers the page of serve in this tab in place of a server, and is to run.js what
 * fetch is: the module, in a worker, so that the page stays fluent. */
'use strict';

let worker = null;

function inTab(path, { body, signal } = {}) {
    worker ??= new Worker('mizzle.js');
    return new Promise((resolve, reject) => {
        const { port1: port, port2 } = new MessageChannel();
        const start = (to) => {
            const fail = (e) => {
                reject(e);
                to.error(e);
                port.close();
            };
            port.onmessage = ({ data: { status, part, failed } }) => {
                if (failed) fail(failed);
                else if (status) resolve(new Response(stream, { status }));
                else if (part) to.enqueue(part);
                else to.close();
            };
            worker.addEventListener('error', () => {
                worker = null; /* the next text tries again */
                fail(new Error('mizzle.js cannot be loaded.'));
            });
            signal?.addEventListener('abort', () => {
                port.postMessage('stop');
                fail(signal.reason);
            });
        };
        const stream = new ReadableStream({ start });
        worker.postMessage({ path, body }, [port2]);
    });
}

addEventListener('DOMContentLoaded', () => {
    const said = make('p', 'note', 'Both models are in this tab, and nothing leaves it. '),
        link = make('a', '', 'One of these texts from inside');
    link.href = 'explain.html';
    said.append(link);
    if (!file) $('intro').append(said); /* a recording is of no tab */
});
