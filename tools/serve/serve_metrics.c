/* serve_metrics.c - counts for Prometheus, in its text format 0.0.4. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/serve/serve_internal.h"

/* Append a metric with its help; label: {..} or "". */
static bool serve_metrics_add(struct buf *out, const char *name, const char *type, const char *help,
                              uint64_t value)
{
    char line[400];
    snprintf(line, sizeof(line),
             "# HELP mizzle_%s %s\n# TYPE mizzle_%s %s\nmizzle_%s %" PRIu64 "\n", name, help, name,
             type, name, value);
    return buf_str(out, line);
}

/* Append the counts of replies by class of status. */
static bool serve_metrics_replies(struct buf *out, struct serve *s)
{
    char line[100];
    bool fine = buf_str(out, "# HELP mizzle_replies_total Replies by class of status.\n"
                             "# TYPE mizzle_replies_total counter\n");
    for (unsigned i = 2; i < 6 && fine; i++) {
        if (i == 3)
            continue;
        snprintf(line, sizeof(line), "mizzle_replies_total{status=\"%uxx\"} %" PRIu64 "\n", i,
                 (uint64_t)atomic_load(&s->statuses[i]));
        fine = buf_str(out, line);
    }
    return fine;
}

void serve_metrics(struct serve_exchange *x)
{
    struct serve *s = x->s;
    const struct texts_counts c = texts_count(s->texts);
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } rows[] = {
        { "connections", "gauge", "Open connections.", server_connections(s->server) },
        { "streams_total", "counter", "Streams begun.", atomic_load(&s->streams) },
        { "slots", "gauge", "Texts that can be written at a time.", c.slots },
        { "slots_busy", "gauge", "Texts in progress.", c.busy },
        { "queue", "gauge", "Texts that wait for a slot.", c.waiting },
        { "texts_total", "counter", "Texts asked for.", c.asked },
        { "texts_finished_total", "counter", "Texts that came to their end.", c.finished },
        { "texts_stopped_total", "counter", "Texts that were cancelled.", c.stopped },
        { "texts_failed_total", "counter", "Texts that ended with an error.", c.failed },
        { "passes_total", "counter", "Passes of the small model.", c.passes },
        { "rows_total", "counter", "Rows of these passes.", c.rows },
        { "prompt_tokens_total", "counter", "Tokens of prompts that were read.", c.prompt_tokens },
        { "cached_tokens_total", "counter", "Tokens of prompts that were known.", c.cached_tokens },
        { "tokens_total", "counter", "Tokens written.", c.tokens },
        { "cloud_tokens_total", "counter", "Those of the cloud.", c.cloud_tokens },
        { "fallback_tokens_total", "counter", "Those that the cloud failed to write.",
          c.fallback_tokens },
        { "cloud_calls_total", "counter", "Calls of the cloud.", c.calls },
        { "cloud_calls_wasted_total", "counter", "Calls whose answer was not needed.", c.wasted },
        { "cloud_refused", "gauge", "1 while the cloud refuses all calls.", c.refused },
    };
    struct buf out = { 0 };
    bool fine = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && fine; i++)
        fine = serve_metrics_add(&out, rows[i].name, rows[i].type, rows[i].help, rows[i].value);
    if (fine && serve_metrics_replies(&out, s))
        serve_routes_send(x, 200, "text/plain; version=0.0.4; charset=utf-8", &out, NULL);
    buf_free(&out);
}
