#include "tools/cloud_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/os.h"
#include "kernels/sys/wipe.h"
#include "model/text/tokenizer.h"
#include "net/cloud.h"
#include "net/http/json_input.h"
#include "router/routing.h"
#include "tools/command.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/setup.h"
#include "weights/find.h"
#include "weights/weights.h"

enum { ROUNDS = 5, NAME = 128 };

/* The cost of one warm call. */
struct trip {
    uint64_t best_ns;
    size_t body, up, down; /* bytes: request body alone; whole call up, down */
};

/* Ask for the same prefix several times; the fastest call is the round trip with everything
 * warm. */
static int cloud_check_measure(struct trip *t, struct cloud *c, struct err *err)
{
    static const uint32_t ids[] = { 1, 2, 3 };
    int rc = OK;
    t->best_ns = UINT64_MAX;
    t->body = cloud_bytes(c, ids, 3, CLOUD_MAX_TOKENS);
    for (int i = 0; i < ROUNDS && rc == OK; i++) {
        uint32_t id;
        struct traffic before = cloud_ledger(c)->traffic;
        uint64_t start = os_now_ns();
        rc = cloud_next(c, ids, 3, &id, err);
        uint64_t ns = os_now_ns() - start;
        t->best_ns = ns < t->best_ns ? ns : t->best_ns;
        struct traffic trip = traffic_since(&cloud_ledger(c)->traffic, &before);
        t->up = (size_t)trip.bytes_up;
        t->down = (size_t)trip.bytes_down;
    }
    return rc;
}

/* Print the report. Strings that the server sent are shown without control characters. */
static void cloud_check_show(const char *url, const struct cloud_info *info, const struct trip *t)
{
    const char *name = info->model ? info->model : "not named";
    char model[NAME]; /* printable: the server may have chosen the name */
    json_input_line(model, sizeof(model), name, strlen(name));
    printf("%s: dialect %s, model %s, token ids %s, round trip %.2f ms\n", url,
           cloud_api_name(info->api), model, info->ids ? "yes" : "no (text, cut into tokens here)",
           (double)t->best_ns / 1e6);
    printf("  server     %s, version %s, health %s\n", *info->server ? info->server : "not named",
           *info->version ? info->version : "not reported", info->healthy ? "ok" : "not ok");
    if (info->context)
        printf("  context    %zu tokens\n", info->context);
    else
        printf("  context    not reported\n");
    if (info->tokenizer)
        printf("  tokenizer  the same as here (by %s)\n", info->tokenizer);
    else
        printf("  tokenizer  not compared%s\n", shared_options.model
                                                    ? ": the server does not show its own"
                                                    : " (name the small model with -m)");
    printf("  connection HTTP/%s\n", info->http2 ? "2" : "1.1");
    printf("  a call     %zu bytes up (body %zu), %zu down, for a prefix of 3\n", t->up, t->body,
           t->down);
}

/* Open the client, ask once to settle the dialect, measure, inspect and print. */
static int cloud_check_look(const char *url, const struct tokenizer *tokenizer, struct err *err)
{
    char *key = NULL;
    struct cloud_options o;
    struct cloud *c = NULL;
    struct cloud_info info;
    struct trip t = { 0 };
    struct mizzle_options all;
    struct err note = { "" };
    int rc = setup_options(&all, err);
    all.cloud_url = url;
    if (rc == OK)
        rc = routing_cloud_options(&o, &key, &all, tokenizer, &interrupted, &note, err);
    if (note.msg[0])
        fprintf(stderr, "mizzle: %s\n", note.msg);
    if (rc == OK)
        rc = cloud_open(&c, &o, err);
    if (rc == OK)
        rc = cloud_ready(c, err);
    if (rc == OK)
        rc = cloud_check_measure(&t, c, err);
    if (rc == OK)
        rc = cloud_inspect(c, &info, err);
    if (c)
        setup_cloud_notes(c);
    if (rc == OK)
        cloud_check_show(url, &info, &t);
    cloud_close(c);
    wipe_text(key);
    return rc;
}

int cloud_check(const char *url)
{
    struct err err = { "" };
    struct weights *w = NULL;
    struct tokenizer *t = NULL;
    setup_catch_interrupts();
    char path[FIND_PATH] = "";
    int rc = shared_options.model ? find_model(path, shared_options.model, &err) : OK;
    if (rc == OK && *path)
        rc = weights_open(&w, path, &err);
    if (rc == OK && w && (rc = tokenizer_open(&t, w, &err)) != OK)
        t = NULL;
    if (rc == OK)
        rc = cloud_check_look(url, t, &err);
    if (t)
        tokenizer_close(t);
    weights_close(w);
    return rc ? command_fail("cloud", rc, &err) : EXIT_FINE;
}
