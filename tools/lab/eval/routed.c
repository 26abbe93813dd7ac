#include "tools/lab/eval/routed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "kernels/sys/cpu.h"
#include "model/text/chat.h"
#include "model/text/tokenizer.h"
#include "net/cloud.h"
#include "tools/cli/setup.h"

/* Print the pending notes of r. */
static void routed_notes(struct routing *r)
{
    struct err note;
    while (routing_note(r, &note))
        setup_print_typed(&note);
}

int routed_open(struct routing *r, const struct engine *e, struct err *err)
{
    struct routing_options o;
    *r = (struct routing){ 0 };
    int rc = setup_options(&o, err);
    if (rc == OK)
        rc = setup_large_model(&o, err);
    struct progress *progress = rc == OK && o.cloud_model && !o.cloud_url
                                    ? setup_open_begin("loading", o.cloud_model)
                                    : NULL;
    if (rc == OK)
        rc = routing_open(r, e, &o, &interrupted, err);
    setup_open_end(progress);
    if (rc == OK)
        routed_notes(r);
    return rc;
}

void routed_close(struct routing *r)
{
    routed_notes(r); /* those of background work */
    routing_close(r);
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

void routed_identity(struct cloud_identity *out, const struct routing *r, const struct engine *e)
{
    const char *url = setup_cloud_url();
    char *base = NULL;
    *out = (struct cloud_identity){ 0 };
    if (!routing_port(r) || (r->cloud && cloud_ready(r->cloud, NULL) != OK))
        return;
    const struct cloud_info info = r->port.info(r->port.arg);
    if (url && cloud_url_check(&base, url, NULL) == OK)
        snprintf(out->url, sizeof(out->url), "%s", base);
    free(base);
    snprintf(out->name, sizeof(out->name), "%s", info.model ? info.model : "unnamed");
    snprintf(out->says, sizeof(out->says), "%s", info.says);
    if (info.tokenizer)
        snprintf(out->vocabulary, sizeof(out->vocabulary), "%016" PRIx64,
                 tokenizer_fingerprint(e->tokenizer));
}
