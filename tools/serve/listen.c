#include "tools/serve/listen.h"

#include <poll.h>
#include <stdio.h>

#include "net/cloud.h"
#include "net/server/server.h"

enum { PORT_MAX = 65535 };

static size_t port = 8080;
static const char *host = "127.0.0.1", *key_file, *tls;

const struct option_group listen_option_rows = {
    "Port and access",
    (const struct option[]){
        { "--port", NULL, OPTION_SIZE, &port, "N",
          "Listen on this port; 0 picks a free one (default: 8080)" },
        { "--host", NULL, OPTION_STR, &host, "ADDR",
          "Listen on this address; one that other machines can reach requires a key (default: "
          "127.0.0.1)" },
        { "--api-key-file", NULL, OPTION_STR, &key_file, "FILE",
          "Require the API key in this file, except for /health and the page's files (default: the "
          "key in MIZZLE_SERVE_KEY, else none)" },
        { "--tls-cert", NULL, OPTION_STR, &tls, "FILE",
          "Serve https with the certificate and the private key in this PEM file (default: http)" },
        OPTION_END,
    },
};

int listen_read(struct server_options *out, char **key, struct err *err)
{
    if (port > PORT_MAX)
        return err_set(err, ERR_ARG, "--port: expected 0 to %d, found %zu", PORT_MAX, port);
    int rc = api_key_of_server(key, key_file, "MIZZLE_SERVE_KEY", err);
    if (rc != OK)
        return rc;
    *out = (struct server_options){ .host = host, .port = (unsigned)port, .key = *key, .tls = tls };
    return OK;
}

void listen_wait(const char *url, const _Atomic int *ended, void (*look)(void *arg), void *arg)
{
    fprintf(stderr, "listening on %s\n", url);
    fflush(stderr);
    while (!*ended) {
        poll(NULL, 0, 100);
        if (look)
            look(arg);
    }
}
