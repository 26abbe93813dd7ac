/* page_check.js - run all checks of the page. Usage: see t_page.sh. */
'use strict';
const { Bench } = require('./browser.js');

const parts = ['writing', 'tokens', 'keyboard', 'hostile', 'speed', 'export', 'access', 'cloud'];

(async () => {
    const bench = await Bench.open();
    for (const name of process.argv.length > 2 ? process.argv.slice(2) : parts) {
        const begin = Date.now();
        try {
            await require(`./check_${name}.js`)(bench);
        } catch (e) {
            bench.check(`${name}: ${e.message.split('\n')[0]}`, false, e.stack);
        }
        console.log(`${name}: ${((Date.now() - begin) / 1000).toFixed(1)} s`);
    }
    await bench.close();
    console.log(`${bench.passed} checks passed, ${bench.failed.length} failed`);
    process.exit(bench.failed.length || !bench.passed ? 1 : 0);
})();
