/* bench_route_ways.c - measures the way of the paper's demo, habit by habit, and its Table 1. */
#include <stdlib.h>

#include "kernels/sys/base.h"
#include "tools/bench/bench_route_internal.h"
#include "tools/bench/paper_baseline.h"
#include "tools/cli/setup.h"
#include "tools/paper_table.h"
#include "tools/stand_in/stand_in.h"

enum { WAYS = 7 };

/* Measure one answer: written with the habits in p, or, if p is NULL, by the decoding loop. */
static int one_way(struct bench_run *r, struct bench_route_way *way, double share, size_t window,
                   const struct paper_baseline *p, struct err *err)
{
    struct decode_stats s;
    struct paper_baseline_cost c;
    int rc = p ? paper_baseline_run(&c, p, err)
               : bench_route_decode(r, &s, &way->text, share, window, err);
    if (rc)
        return rc;
    if (!p)
        c = (struct paper_baseline_cost){ .ms = s.total_ms,
                                          .edge_ms = s.edge_ms + s.router_ms,
                                          .cloud_ms = s.cloud_ms,
                                          .ttft_ms = s.ttft_ms,
                                          .calls = s.calls,
                                          .up = s.traffic.bytes_up,
                                          .down = s.traffic.bytes_down,
                                          .text = way->text };
    double calls = c.calls ? (double)c.calls : 1;
    way->s = c.ms / 1e3;
    way->ttft_s = c.ttft_ms / 1e3;
    way->edge_s = c.edge_ms / 1e3;
    way->cloud_s = c.cloud_ms / 1e3;
    way->calls = c.calls;
    way->up = (double)c.up / calls;
    way->down = (double)c.down / calls;
    way->text = c.text;
    return OK;
}

/* Set *way to its median sample. */
static int measure_way(struct bench_run *r, struct bench_route_way *way, double share,
                       size_t window, const struct paper_baseline *p, struct err *err)
{
    size_t n = r->o->repeat;
    struct bench_route_way *samples = calloc(n, sizeof(*samples));
    int rc = samples ? OK : err_set(err, ERR_NOMEM, "bench: out of memory");
    for (size_t i = 0; i < n && rc == OK; i++) {
        samples[i] = *way;
        rc = one_way(r, &samples[i], share, window, p, err);
    }
    if (rc == OK)
        *way = route_ways_median(samples, n);
    free(samples);
    return rc;
}

/* Return an answer that is written as the paper's demo writes it, with all of its habits or with
 * one, a number from 2 to 5 as in bench_route_ways. */
static struct paper_baseline bench_route_baseline(const struct bench_run *r, double share, bool all,
                                                  size_t habit)
{
    return (struct paper_baseline){ .session = r->session,
                                    .tok = r->vocab,
                                    .sampler = r->sampler,
                                    .prompt = r->prompt,
                                    .n = r->o->prompt,
                                    .tokens = r->o->tokens,
                                    .share = (float)share,
                                    .seed = r->seed,
                                    .url = stand_in_url(r->server),
                                    .stop = &interrupted,
                                    .no_cache = all || habit == 2,
                                    .connect = all || habit == 3,
                                    .text = all || habit == 4,
                                    .want = all || habit == 5 ? PAPER_TOKENS : 1 };
}

/* Measure and print --as-paper. */
int bench_route_ways(struct bench_run *r, struct err *err)
{
    struct bench_route_way w[WAYS] = {
        { .name = "default" },
        { .name = "in step" },         /* waits for each call */
        { .name = "no KV cache" },     /* evaluates the whole text for each token */
        { .name = "new connections" }, /* connects for each call */
        { .name = "text" },            /* sends text and cuts it into tokens again */
        { .name = "16 tokens" },       /* asks for 16 tokens and uses one */
        { .name = "as the paper" },    /* all of these */
    };
    double share = r->shares.at[0];
    size_t window = 1;
    for (size_t i = r->aheads.n; i-- > 0;)
        window = r->aheads.at[i] > 0 ? (size_t)r->aheads.at[i] : window;
    int rc = bench_route_rehearse(r, share, true, err);
    if (rc == OK)
        rc = bench_route_open_server(r, r->latencies.at[0], 1, err);
    if (rc == OK)
        rc = measure_way(r, &w[0], share, window, NULL, err);
    if (rc == OK)
        rc = measure_way(r, &w[1], share, 0, NULL, err);
    for (size_t i = 2; i < WAYS && rc == OK; i++) {
        const struct paper_baseline p = bench_route_baseline(r, share, i == WAYS - 1, i);
        rc = measure_way(r, &w[i], share, 0, &p, err);
    }
    route_ways_extra(w, WAYS);
    bench_route_quiet(r);
    if (rc == OK)
        rc = route_report_ways(r->o->format, &r->setting, w, WAYS, err);
    if (rc == OK && r->o->plot)
        rc = route_plot_ways(r->o->plot, w, WAYS, err);
    return rc;
}

/* Measure and print --table paper. */
int bench_route_paper(struct bench_run *r, struct err *err)
{
    struct paper_row rows[PAPER_ROWS];
    int rc = OK;
    for (size_t i = 0; i < PAPER_ROWS && rc == OK; i++) {
        struct bench_route_way way = { .name = NULL };
        double share = paper_rows[i].routed / 100;
        rc = bench_route_rehearse(r, share, i == 0, err);
        if (rc == OK)
            rc = bench_route_open_server(r, r->latencies.at[0], 1, err);
        const struct paper_baseline p = bench_route_baseline(r, share, true, 0);
        if (rc == OK)
            rc = measure_way(r, &way, share, (size_t)r->aheads.at[0], r->as_paper ? &p : NULL, err);
        bench_route_close_server(r);
        rows[i] = paper_row_make(paper_rows[i].threshold, r->o->tokens, r->truth.routed,
                                 1e3 * way.edge_s, 1e3 * way.ttft_s, 1e3 * way.s);
    }
    bench_route_quiet(r);
    if (rc == OK)
        rc = route_report_paper(r->o->format, &r->setting, rows, err);
    return rc;
}
