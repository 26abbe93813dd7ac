// h2_server.js - an HTTP/2 server over TLS for t_net_proxy.c: a completion takes 100 ms, and its
// token is the number of connections so far. Usage: node h2_server.js CERT KEY [http1]
const fs = require('fs');
const tls = { cert: fs.readFileSync(process.argv[2]), key: fs.readFileSync(process.argv[3]) };
const only1 = process.argv[4] === 'http1';
let connections = 0;

function answer(request, response) {
  request.resume();
  request.on('end', () => {
    setTimeout(() => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ choices: [{ text: 'x', token_ids: [connections] }] }));
    }, request.url === '/v1/completions' ? 100 : 0);
  });
}

const server = only1 ? require('https').createServer(tls, answer)
                     : require('http2').createSecureServer({ ...tls, allowHTTP1: true }, answer);
server.on('secureConnection', () => { connections++; });
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)); // the test is gone
process.stdin.resume();
