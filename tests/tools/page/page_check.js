/* page_check.js - run all checks of the page, or those of the files named: writing, tokens, ...
 * Each check has a page of its own, so several run at a time; those of ALONE run one by one. */
'use strict';
const { Bench } = require('./browser.js');

const LANES = 3;
const FILES = 'access real writing tokens cloud key keyboard hostile export'.split(' ');
const ALONE = ['speed'];

async function lane(bench, parts) {
    for (let part = parts.shift(); part; part = parts.shift()) await bench.part(part);
}

(async () => {
    const names = process.argv.length > 2 ? process.argv.slice(2) : [...FILES, ...ALONE];
    const of = (list) => list.flatMap((name) => require(`./check_${name}.js`));
    const bench = await Bench.open();
    const parts = of(names.filter((name) => !ALONE.includes(name)));
    await Promise.all(Array.from({ length: LANES }, () => lane(bench, parts)));
    await lane(bench, of(names.filter((name) => ALONE.includes(name))));
    await bench.close();
})();
