#include "tools/lab/eval/routed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "tools/command.h"
#include "tools/lab/stand_in/stand_in.h"

enum { MAX_LATENCY_MS = 600000 };

struct network_options network_options;

const struct option_group network_option_rows = {
    "Simulated network",
    (const struct option[]){
        { "--latency", NULL, OPTION_SIZE, &network_options.latency, "MS",
          "Delay each answer by a round trip of MS milliseconds (default: 0)" },
        { "--bandwidth", NULL, OPTION_STR, &network_options.bandwidth, "N[,N]",
          "Limit each connection to N bytes per second, or to UP,DOWN; 0: no limit (default: 0)" },
        { "--loss", NULL, OPTION_FLOAT, &network_options.loss, "RATE",
          "Lose this share of the packets; each loss costs a retransmission timeout of 200 ms "
          "plus the latency, doubled if the packet is lost again (default: 0)" },
        OPTION_END,
    },
};

/* Parse --bandwidth: "1000", or "1000,2000" for up and down. */
static int routed_bandwidth(struct stand_in_net *net, const char *text, struct err *err)
{
    char up[13] = "", down[13] = "";
    int one = 0, both = 0;
    sscanf(text, "%12[0-9]%n,%12[0-9]%n", up, &one, down, &both);
    if (!one || text[both ? both : one])
        return err_set(err, ERR_ARG, "--bandwidth: expected N or UP,DOWN, found %s", text);
    net->up = strtoull(up, NULL, 10);
    net->down = strtoull(both ? down : up, NULL, 10);
    return OK;
}

int routed_network(struct stand_in_net *net, struct err *err)
{
    const struct network_options *n = &network_options;
    if (n->latency > MAX_LATENCY_MS)
        return err_set(err, ERR_ARG, "--latency: expected 0 to %d, found %zu", MAX_LATENCY_MS,
                       n->latency);
    if (!(n->loss >= 0 && n->loss < 1))
        return err_set(err, ERR_ARG, "--loss: expected 0 or more, below 1, found %g",
                       (double)n->loss);
    net->latency_ms = (unsigned)n->latency;
    net->loss = (double)n->loss;
    return n->bandwidth ? routed_bandwidth(net, n->bandwidth, err) : OK;
}

/* Start the stand-in server with the model that o->cloud_model names, and put its address there. */
static int routed_stand_in(struct stand_in **out, struct routing_options *o, struct err *err)
{
    struct stand_in_options s = { .model = o->cloud_model,
                                  .isa = shared_options.engine.isa,
                                  .threads = shared_options.engine.threads,
                                  .kv = shared_options.engine.kv };
    int rc = routed_network(&s.net, err);
    if (rc != OK)
        return rc;
    struct progress *progress = setup_open_begin("loading", s.model);
    rc = stand_in_open(out, &s, err);
    setup_open_end(progress);
    if (rc != OK)
        return rc;
    o->cloud_url = stand_in_url(*out);
    o->cloud_model = NULL;    /* our own server has only one */
    o->cloud_key_file = NULL; /* and needs no key */
    o->cloud_key_env = false;
    return OK;
}

/* Let a server of this process answer, if a network is simulated, in place of its model. */
static int routed_large_model(struct stand_in **out, struct routing_options *o, struct err *err)
{
    const struct network_options *n = &network_options;
    bool simulated = n->latency || n->bandwidth || n->loss > 0;
    *out = NULL;
    if (o->cloud_url && simulated)
        return err_set(err, ERR_ARG,
                       "--latency, --bandwidth, --loss: expected the stand-in server of this "
                       "process, found the server %s",
                       o->cloud_url);
    int rc = setup_large_model(o, err);
    bool here = o->cloud_model && !o->cloud_url;
    return rc == OK && here && (simulated || n->served) ? routed_stand_in(out, o, err) : rc;
}

/* Print the pending notes of r. */
static void routed_notes(struct routing *r)
{
    struct err note;
    while (routing_note(r, &note))
        setup_print_typed(&note);
}

int routed_open(struct routing *r, struct stand_in **server, const struct engine *e,
                struct err *err)
{
    struct routing_options o;
    *r = (struct routing){ 0 };
    *server = NULL;
    int rc = setup_options(&o, err);
    if (rc == OK)
        rc = routed_large_model(server, &o, err);
    struct progress *progress =
        o.cloud_model && !o.cloud_url ? setup_open_begin("loading", o.cloud_model) : NULL;
    if (rc == OK)
        rc = routing_open(r, e, &o, &interrupted, err);
    setup_open_end(progress);
    if (rc == OK) {
        routed_notes(r);
        return OK;
    }
    stand_in_close(*server);
    *server = NULL;
    return rc;
}

void routed_close(struct routing *r, struct stand_in *server)
{
    routed_notes(r); /* those of background work */
    routing_close(r);
    stand_in_close(server);
}

void routed_chat_note(const struct engine *e)
{
    static bool told;
    struct err note;
    if (!told && chat_note(e->chat, &note))
        setup_print_typed(&note);
    told = true;
}

const char *routed_exactness(const struct engine *e)
{
    return e->kernels.needs & CPU_INEXACT ? e->kernels.isa : "exact";
}

void routed_identity(struct cloud_identity *out, const struct routing *r,
                     const struct stand_in *server, const struct engine *e)
{
    const char *url = setup_cloud_url();
    char *base = NULL;
    *out = (struct cloud_identity){ 0 };
    if (!routing_port(r) || (r->cloud && cloud_ready(r->cloud, NULL) != OK))
        return;
    const struct cloud_info info = r->port.info(r->port.arg);
    if (!server && url && cloud_url_check(&base, url, NULL) == OK)
        snprintf(out->url, sizeof(out->url), "%s", base);
    free(base);
    snprintf(out->name, sizeof(out->name), "%s", info.model ? info.model : "unnamed");
    snprintf(out->says, sizeof(out->says), "%s", info.says);
    if (info.tokenizer)
        snprintf(out->vocabulary, sizeof(out->vocabulary), "%016" PRIx64,
                 tokenizer_fingerprint(e->tokenizer));
}
