#include "tools/lab/eval/eval_clock.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "net/cloud.h"
#include "tools/cli/setup.h"
#include "tools/lab/eval/routed.h"

/* PATIENCE_MS is how long the virtual clock's real calls may take. */
enum { MAX_MS = 60000, PATIENCE_MS = 600000 };

static const char *kind = "real";
static const char *edge_text = "0";
static float edge_ms, prefill_ms, cloud_ms;

const struct option_group eval_clock_rows = {
    "Clock",
    (const struct option[]){
        { "--clock", NULL, OPTION_STR, &kind, "KIND",
          "Take times from this clock: real measures them, virtual computes them from what was "
          "decided about each token, without waiting. A call that takes longer than "
          "--cloud-timeout by this clock leaves the token to the small model, also with --cloud "
          "required (default: real)" },
        { "--edge-ms", NULL, OPTION_STR, &edge_text, "T[,P]",
          "Make each step of the small model take T milliseconds, or with a real clock at least "
          "that; virtual: read a prompt at P milliseconds per token, but take one step at least "
          "(default: as long as it takes; virtual: T must be given, and P is 0)" },
        { "--cloud-ms", NULL, OPTION_FLOAT, &cloud_ms, "T",
          "virtual: let the cloud compute T milliseconds per token, in addition to the latency "
          "(default: 0)" },
        OPTION_END,
    },
};

/* Set *out to the virtual clock that the options describe. */
static int eval_clock_virtual(struct virtual_clock *out, struct err *err)
{
    struct stand_in_net net = { 0 };
    int rc = routed_network(&net, err);
    if (rc != OK)
        return rc;
    if (!(edge_ms > 0))
        return err_set(err, ERR_ARG, "--clock virtual: expected --edge-ms with it");
    if (shared_options.cloud_tokens != 1)
        return err_set(err, ERR_ARG, "--clock virtual: expected --cloud-tokens 1, found %zu",
                       shared_options.cloud_tokens);
    *out = (struct virtual_clock){
        .edge_ms = (double)edge_ms,
        .prefill_ms = (double)prefill_ms,
        .cloud_ms = (double)cloud_ms,
        .deadline_ms = (double)(shared_options.cloud_timeout ? shared_options.cloud_timeout
                                                             : CLOUD_TIMEOUT_MS),
        .net = net,
    };
    network_options = (struct network_options){ .served = true };
    shared_options.cloud_timeout = PATIENCE_MS;
    return OK;
}

int eval_clock_read(struct eval_clock *out, struct err *err)
{
    *out = (struct eval_clock){ .is_virtual = strcmp(kind, "virtual") == 0 };
    if (!out->is_virtual && strcmp(kind, "real") != 0)
        return err_set(err, ERR_ARG, "--clock: expected real or virtual, found %s", kind);
    char *end = NULL;
    edge_ms = strtof(edge_text, &end);
    prefill_ms = *end == ',' ? strtof(end + 1, &end) : 0;
    if (!*edge_text || *end)
        return err_set(err, ERR_ARG, "--edge-ms: expected T or T,P, found %s", edge_text);
    const float all[] = { edge_ms, prefill_ms, cloud_ms };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (!(all[i] >= 0 && all[i] <= MAX_MS))
            return err_set(err, ERR_ARG, "--edge-ms, --cloud-ms: expected 0 to %d, found %g",
                           MAX_MS, (double)all[i]);
    if (out->is_virtual)
        return eval_clock_virtual(&out->clock, err);
    if (prefill_ms > 0 || cloud_ms > 0)
        return err_set(err, ERR_ARG, "--edge-ms T,P, --cloud-ms: expected --clock virtual with it");
    out->step_ns = (uint64_t)((double)edge_ms * 1e6);
    return OK;
}

json_t *eval_clock_json(const struct eval_clock *c)
{
    const struct network_options *n = &network_options;
    const struct virtual_clock *v = &c->clock;
    if (c->is_virtual)
        return json_pack("{s:s,s:f,s:f,s:f,s:f,s:i,s:I,s:I,s:f}", "kind", "virtual", "edge_ms",
                         v->edge_ms, "prefill_ms", v->prefill_ms, "cloud_ms", v->cloud_ms,
                         "timeout_ms", v->deadline_ms, "latency_ms", (int)v->net.latency_ms, "up",
                         (json_int_t)v->net.up, "down", (json_int_t)v->net.down, "loss",
                         v->net.loss);
    return json_pack("{s:s,s:f,s:i,s:s,s:f}", "kind", "real", "edge_ms", (double)c->step_ns / 1e6,
                     "latency_ms", (int)n->latency, "bandwidth", n->bandwidth ? n->bandwidth : "0",
                     "loss", (double)n->loss);
}
