/* web.c - `mizzle serve` in a browser: the demo pair in one module, asked without HTTP. mizzle.js
 * has net/server's interface, and what else the module imports; threads.h says how it does without
 * threads. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "net/server/server.h"
#include "router/routing.h"
#include "tools/command.h"
#include "tools/serve/serve.h"

#define WEB_API(name) __attribute__((export_name(#name))) name

static struct server_options options;
static struct serve *serve;

const struct command cmd_serve = { .name = "serve" }; /* whose options nobody has typed here */

/* Jansson's, for a file with one value in a line. */
json_t *json_loadf(FILE *f, size_t flags, json_error_t *why)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n = getline(&line, &room, f);
    json_t *out = n > 0 ? json_loadb(line, (size_t)n, flags, why) : NULL;
    free(line);
    return out;
}

int server_open(struct server **out, const struct server_options *o, struct err *err)
{
    (void)err;
    options = *o;
    *out = NULL;
    return OK;
}

/* Answer a request, whose number takes the place of a pointer. */
void WEB_API(web_answer)(struct server_request *r)
{
    if (options.head(options.arg, r))
        options.handle(options.arg, r);
}

/* Open the demo pair, whose files are in the folder /, with the settings of `mizzle serve`. Returns
 * NULL, or what is wrong in one line. */
const char *WEB_API(web_open)(void)
{
    static struct err err;
    const struct serve_options so = { .demo = true, .parallel = 8, .queue = 256 };
    struct routing_options o = routing_defaults;
    o.engine.model = "/edge-0.5.gguf";
    o.cloud_model = "/cloud.gguf";
    o.engine.threads = 1;
    setenv("MIZZLE_DEMO", "/", 1);
    int rc = serve_open(&serve, &so, &err);
    if (rc == OK)
        rc = serve_load(serve, &o, &err);
    return rc == OK ? NULL : err.msg;
}
