#include "tools/lab/stand_in/stand_in.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/sys/base.h"
#include "tools/cli/demo_files.h"
#include "tools/lab/stand_in/request.h"
#include "tools/lab/stand_in/source.h"

enum {
    PATIENCE_MS = 60000,
    GRACE_MS = 2000,
    MORE_HEADERS = 256 << 10 /* if a fault needs it */
};

/* True if a fault sends a header without a fixed value, which is a huge one. */
static bool needs_headers(const struct stand_in_faults *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->at[i].fault->header && !f->at[i].fault->value)
            return true;
    return false;
}

/* Open the server, whose address is checked before the model is read. */
static int stand_in_listen(struct stand_in *s, const struct stand_in_options *o, struct err *err)
{
    struct server_options so = o->listen;
    so.head_ms = so.head_ms ? so.head_ms : PATIENCE_MS;
    so.body_ms = so.body_ms ? so.body_ms : PATIENCE_MS;
    so.send_ms = PATIENCE_MS;
    so.head_max = needs_headers(&o->faults) ? MORE_HEADERS : 0;
    so.any_host = so.key != NULL; /* else any site's page could ask it, by a name of that site */
    so.later = true;
    stand_in_request_serve(&so, s);
    return server_open(&s->server, &so, err);
}

/* Open everything the server needs, then start it. The caller cleans up after an error. */
static int stand_in_start(struct stand_in *s, const struct stand_in_options *o, const char *path,
                          struct err *err)
{
    s->draw = stand_in_chance_open(o->seed);
    if (!s->draw)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    s->api.server = o->server;
    int rc = stand_in_listen(s, o, err);
    if (rc == OK)
        rc = stand_in_source_open(&s->api.source, path, o, err);
    if (rc)
        return rc;
    local_cloud_name(s->name, path);
    s->api.name = s->name;
    s->api.created = time(NULL);
    s->faults = o->faults;
    s->net = o->net;
    return server_start(s->server, err);
}

int stand_in_open(struct stand_in **out, const struct stand_in_options *o, struct err *err)
{
    *out = NULL;
    const char *path = o->model || o->oracle ? o->model : demo_files_path("cloud.gguf");
    if (o->oracle && !path)
        path = "oracle";
    if (!path)
        return err_set(err, ERR_IO, "the demo pair's cloud model is not found; name one with -m");
    struct stand_in *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(err, ERR_NOMEM, "cloud: out of memory");
    pthread_mutex_init(&s->line, NULL);
    int rc = stand_in_start(s, o, path, err);
    if (rc) {
        stand_in_close(s);
        return rc;
    }
    *out = s;
    return OK;
}

void stand_in_close(struct stand_in *s)
{
    if (!s)
        return;
    server_close(s->server, GRACE_MS);
    stand_in_source_close(s->api.source);
    stand_in_chance_close(s->draw);
    pthread_mutex_destroy(&s->line);
    free(s);
}

void stand_in_forget(struct stand_in *s)
{
    stand_in_chance_forget(s->draw);
}

void stand_in_set_network(struct stand_in *s, const struct stand_in_net *net)
{
    pthread_mutex_lock(&s->line);
    s->net = *net;
    pthread_mutex_unlock(&s->line);
}

unsigned stand_in_port(const struct stand_in *s)
{
    return server_port(s->server);
}

const char *stand_in_url(const struct stand_in *s)
{
    return server_url(s->server);
}
