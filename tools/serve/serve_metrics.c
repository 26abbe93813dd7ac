/* serve_metrics.c - counts, in Prometheus' text format 0.0.4, untyped. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/serve/serve_exchange.h"

void serve_metrics(struct serve_exchange *x)
{
    const struct texts_counts c = texts_count(x->s->texts);
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        { "connections", server_connections(x->s->server) },
        { "streams_total", atomic_load(&x->s->streams) }, /* begun */
        { "slots", c.slots }, /* texts that can be written at a time; of these, in progress */
        { "slots_busy", c.busy },
        { "queue", c.waiting }, /* texts that wait for a slot */
        { "texts_total", c.asked },
        { "texts_finished_total", c.finished },
        { "texts_stopped_total", c.stopped },
        { "texts_failed_total", c.failed },
        { "passes_total", c.passes }, /* of the small model, and their rows */
        { "rows_total", c.rows },
        { "prompt_tokens_total", c.prompt_tokens }, /* read; those below were known */
        { "cached_tokens_total", c.cached_tokens },
        { "tokens_total", c.tokens },
        { "cloud_tokens_total", c.cloud_tokens },
        { "fallback_tokens_total", c.fallback_tokens },
        { "cloud_calls_total", c.calls },
        { "cloud_refused", c.refused }, /* 1 while the cloud refuses all calls */
        { "cloud_lost", c.lost }, /* 1 when it refuses or fails, until it has answered again */
    };
    struct buf out = { 0 };
    bool fine = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && fine; i++) {
        char line[100];
        snprintf(line, sizeof(line), "mizzle_%s %" PRIu64 "\n", rows[i].name, rows[i].value);
        fine = buf_str(&out, line);
    }
    if (fine)
        serve_routes_send(x, 200, "text/plain; version=0.0.4; charset=utf-8", &out, NULL);
    buf_free(&out);
}
