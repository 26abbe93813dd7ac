/* cmd_bench.c - `mizzle bench`: model: tokens a second of a file or of a shape with random weights;
 * kernels: each operation alone; limits: what the machine can do at most; route: what routing to a
 * cloud costs. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/base.h"
#include "kernels/cpu.h"
#include "kernels/math.h"
#include "kernels/os.h"
#include "kernels/pool.h"
#include "model/model.h"
#include "model/session.h"
#include "tools/bench.h"
#include "tools/cmd.h"
#include "tools/setting.h"

enum { MAX_REPEAT = 1000 };

enum { UNSET = 0x7fffffff }; /* the default is the subject's */
static size_t n_prompt = UNSET, n_gen = UNSET, n_depth, repeat = UNSET;
static const char *format = "md", *shape, *type_name = "q8_0", *only, *plot;

static const struct opt_group own = {
    "Bench",
    (const struct opt[]){
        { "--n-prompt", "-p", OPT_SIZE, &n_prompt, "N",
          "tokens of the prompt (default: 512; route: 100)" },
        { "--n-gen", "-n", OPT_SIZE, &n_gen, "N",
          "tokens one at a time (default: 128; route: 100)" },
        { "--n-depth", "-d", OPT_SIZE, &n_depth, "N", "tokens there before (default: 0)" },
        { "--repeat", "-r", OPT_SIZE, &repeat, "N", "samples of each test (default: 5; route: 1)" },
        { "--output", "-o", OPT_STR, &format, "FORM", "md, csv, json or jsonl (default: md)" },
        { "--shape", NULL, OPT_STR, &shape, "NAME",
          "qwen2.5-0.5b, -1.5b, -3b, -7b; needs no file" },
        { "--type", NULL, OPT_STR, &type_name, "TYPE",
          "of --shape: f32, bf16, q8_0, q4_0 (default: q8_0)" },
        { "--only", NULL, OPT_STR, &only, "OP", "kernels: this operation alone" },
        { "--plot", NULL, OPT_STR, &plot, "FILE",
          "kernels: a roofline as SVG; route: time a token" },
        { NULL, NULL, OPT_FLAG, NULL, NULL, NULL },
    },
};

static const struct opt_group *const groups[] = { &own, &bench_route_opts, &opt_engine, NULL };

struct test {
    size_t prompt, gen;
    double samples[MAX_REPEAT], mean, deviation; /* tokens a second */
    double probe; /* GB/s read from memory right before the first sample */
};

static int eval(struct session *s, size_t n, size_t one_at_a_time, struct err *err)
{
    uint32_t ids[SESSION_CHUNK];
    size_t vocab = model_config(session_model(s))->vocab;
    while (n) {
        size_t some = one_at_a_time ? 1 : n < SESSION_CHUNK ? n : SESSION_CHUNK;
        for (size_t i = 0; i < some; i++)
            ids[i] = (uint32_t)rand_below(3, session_length(s) + i, vocab);
        int rc = session_eval(s, ids, some, &interrupted, err);
        if (rc)
            return rc;
        if (one_at_a_time)
            session_logits(s, 0);
        n -= some;
    }
    session_logits(s, 0);
    return OK;
}

static int run_test(struct test *t, struct session *s, struct pool *pool, struct err *err)
{
    size_t n = t->prompt + t->gen;
    session_rewind(s, 0);
    int rc = n_depth ? eval(s, n_depth, 0, err) : OK;
    if (!rc)
        rc = eval(s, t->prompt ? n : 1, t->gen, err); /* warm */
    t->probe = bench_probe(pool);
    for (size_t r = 0; !rc && r < repeat; r++) {
        session_rewind(s, n_depth);
        uint64_t begin = os_now_ns();
        rc = eval(s, n, t->gen, err);
        t->samples[r] = (double)n / ((double)(os_now_ns() - begin) / 1e9);
        t->mean += t->samples[r] / (double)repeat;
    }
    for (size_t r = 0; r < repeat; r++)
        t->deviation += (t->samples[r] - t->mean) * (t->samples[r] - t->mean);
    t->deviation = repeat > 1 ? sqrt(t->deviation / (double)(repeat - 1)) : 0;
    return rc;
}

static json_t *row(const struct test *t, const struct engine *e, const char *kv)
{
    json_t *samples = json_array(), *o = json_object();
    for (size_t r = 0; r < repeat; r++)
        json_array_append_new(samples, json_real(t->samples[r]));
    const char *model = shape ? shape : engine_opts.model ? engine_opts.model : "demo";
    json_object_set_new(o, "cpu", json_string(cpu_name()));
    json_object_set_new(o, "model", json_string(model));
    json_object_set_new(o, "type", json_string(model_type_name(e->model)));
    json_object_set_new(o, "model_size", json_integer((json_int_t)model_bytes(e->model)));
    json_object_set_new(o, "model_n_params", json_integer((json_int_t)model_params(e->model)));
    json_object_set_new(o, "isa", json_string(e->kernels.isa));
    json_object_set_new(o, "n_threads", json_integer((json_int_t)pool_threads(e->pool)));
    json_object_set_new(o, "kv", json_string(kv));
    json_object_set_new(o, "n_prompt", json_integer((json_int_t)t->prompt));
    json_object_set_new(o, "n_gen", json_integer((json_int_t)t->gen));
    json_object_set_new(o, "n_depth", json_integer((json_int_t)n_depth));
    json_object_set_new(o, "avg_ts", json_real(t->mean));
    json_object_set_new(o, "stddev_ts", json_real(t->deviation));
    json_object_set_new(o, "samples_ts", samples);
    json_object_set_new(o, "probe_gb_s", json_real(t->probe));
    return o;
}

static void print_rows(const struct test *tests, size_t n, const struct engine *e, const char *kv)
{
    bool json = !strcmp(format, "json"), lines = !strcmp(format, "jsonl"), csv = *format == 'c';
    if (json)
        puts("[");
    else if (csv)
        puts("type,isa,n_threads,kv,n_prompt,n_gen,n_depth,avg_ts,stddev_ts,probe_gb_s");
    else if (!lines)
        puts("| type | isa | threads | test | tokens/s | read GB/s | probe GB/s |\n"
             "|---|---|---|---|---|---|---|");
    for (size_t i = 0; i < n; i++) {
        const struct test *t = &tests[i];
        const char *type = model_type_name(e->model);
        size_t threads = pool_threads(e->pool);
        if (json || lines) {
            json_t *o = row(t, e, kv);
            char *text = json_dumps(o, 0);
            printf("%s%s\n", text ? text : "{}", json && i + 1 < n ? "," : "");
            free(text);
            json_decref(o);
        } else if (csv) {
            printf("%s,%s,%zu,%s,%zu,%zu,%zu,%.3f,%.3f,%.1f\n", type, e->kernels.isa, threads, kv,
                   t->prompt, t->gen, n_depth, t->mean, t->deviation, t->probe);
        } else {
            printf("| %s | %s | %zu | %s%zu", type, e->kernels.isa, threads, t->gen ? "tg" : "pp",
                   t->gen ? t->gen : t->prompt);
            if (n_depth)
                printf(" @ %zu", n_depth);
            printf(" | %.2f +- %.2f | ", t->mean, t->deviation);
            if (t->gen)
                printf("%.1f", t->mean * (double)model_bytes(e->model) / 1e9);
            printf(" | %.1f |\n", t->probe);
        }
    }
    if (json)
        puts("]");
}

static bool parse_type(enum ptype *out)
{
    for (enum ptype p = P_F32; p <= P_Q4; p++)
        if (!strcasecmp(type_name, panels_type_name(p))) {
            *out = p;
            return true;
        }
    return false;
}

/* A shape with random weights in place of a file. */
static int open_shape(struct engine *e, struct err *err)
{
    struct model_config c;
    enum ptype type;
    const char *isa = engine_opts.isa ? engine_opts.isa : getenv("MIZZLE_ISA");
    *e = (struct engine){ .model = NULL };
    if (!model_shape(&c, shape))
        return err_set(err, ERR_ARG, "--shape: expected qwen2.5-0.5b, -1.5b, -3b or -7b, found %s",
                       shape);
    if (!parse_type(&type))
        return err_set(err, ERR_ARG, "--type: expected f32, bf16, q8_0 or q4_0, found %s",
                       type_name);
    int rc = kernels_pick(&e->kernels, isa, cpu_detect(), err);
    if (!rc)
        rc = pool_open(&e->pool, engine_opts.threads, err);
    if (!rc)
        rc = model_random(&e->model, &c, type, &e->kernels, e->pool, 1, err);
    return rc;
}

static int open_engine(struct engine *e, enum kvcache *kv, struct err *err)
{
    const char *name = engine_opts.kv ? engine_opts.kv : "f16";
    if (strcmp(name, "f16") && strcmp(name, "f32"))
        return err_set(err, ERR_ARG, "--kv: expected f32 or f16, found %s", name);
    *kv = strcmp(name, "f16") ? KVCACHE_F32 : KVCACHE_F16;
    return shape ? open_shape(e, err) : engine_open(e, NULL, false, err);
}

static void close_engine(struct engine *e)
{
    if (e->model || e->pool)
        engine_close(e);
}

static int bench(struct err *err)
{
    static struct test tests[2];
    enum kvcache kv;
    size_t n = 0, most = n_prompt > n_gen ? n_prompt : n_gen;
    struct engine e = { .model = NULL };
    struct session *s = NULL;
    if (!most || most > 1 << 20 || n_depth > 1 << 20)
        return err_set(err, ERR_ARG, "-p, -n, -d: expected at most 1048576, and -p or -n above 0");
    int rc = open_engine(&e, &kv, err);
    if (!rc)
        rc = session_open(&s, e.model, e.pool, most + n_depth, kv, err);
    if (!rc && n_prompt) {
        tests[n].prompt = n_prompt;
        rc = run_test(&tests[n++], s, e.pool, err);
    }
    if (!rc && n_gen) {
        tests[n].gen = n_gen;
        rc = run_test(&tests[n++], s, e.pool, err);
    }
    if (!rc)
        print_rows(tests, n, &e, kv == KVCACHE_F16 ? "f16" : "f32");
    session_close(s);
    close_engine(&e);
    return rc;
}

static int route(struct bench_options *o, struct err *err)
{
    struct engine e = { .model = NULL };
    int rc = open_engine(&e, &o->kv, err);
    if (!rc)
        rc = bench_route(o, &e, err);
    close_engine(&e);
    return rc;
}

static int run(int argc, char **argv)
{
    struct err err = { "" };
    int nargs = 0, status = opt_parse(&cmd_bench, argc, argv, &nargs);
    if (status >= 0)
        return status;
    setting_catch_interrupts();
    const char *subject = nargs == 1 ? argv[1] : "";
    bool routes = !strcmp(subject, "route");
    n_prompt = n_prompt != UNSET ? n_prompt : routes ? 100 : 512;
    n_gen = n_gen != UNSET ? n_gen : routes ? 100 : 128;
    repeat = repeat != UNSET ? repeat : routes ? 1 : 5;
    struct bench_options o = { .format = format,
                               .repeat = repeat,
                               .only = only,
                               .plot = plot,
                               .prompt = n_prompt,
                               .tokens = n_gen,
                               .model = shape               ? shape
                                        : engine_opts.model ? engine_opts.model
                                                            : "demo" };
    int rc;
    if (repeat < 1 || repeat > MAX_REPEAT)
        rc = err_set(&err, ERR_ARG, "-r: expected 1 to %d, found %zu", MAX_REPEAT, repeat);
    else if (strcmp(format, "md") && strcmp(format, "csv") && strcmp(format, "json") &&
             strcmp(format, "jsonl"))
        rc = err_set(&err, ERR_ARG, "-o: expected md, csv, json or jsonl, found %s", format);
    else if (!strcmp(subject, "model"))
        rc = bench(&err);
    else if (!strcmp(subject, "kernels"))
        rc = bench_kernels(&o, &err);
    else if (!strcmp(subject, "limits"))
        rc = bench_limits(&o, engine_opts.threads, &err);
    else if (routes)
        rc = route(&o, &err);
    else
        rc = err_set(&err, ERR_ARG, "expected bench model, kernels, limits or route, found %s",
                     nargs ? argv[1] : "nothing");
    return cmd_fail("bench", rc, &err);
}

const struct command cmd_bench = {
    .name = "bench",
    .summary = "speed of a model, of each kernel, of routing, and limits of the machine",
    .args = "model | kernels | limits | route",
    .description =
        "model evaluates a prompt of -p tokens at once, then -n tokens one at a time with the "
        "output "
        "head, and prints tokens a second. Before each test the read bandwidth of the memory is "
        "probed on the same threads: one token reads all weights, so that is its limit. kernels "
        "times every operation of every set at the shapes of Qwen2.5-0.5B on one thread, beside "
        "what reading and the set's own instructions reach at most; scalar, which is slow, with 6 "
        "tokens where the others have 192. limits shows what reading and each kind of arithmetic "
        "reach at most, kernels aside.\n\n"
        "route writes a text of -n tokens after a random prompt of -p, through the decoding loop, "
        "the HTTP client and a server on the loopback, once for each --routed, --latency and "
        "--ahead (lists, as 0.07,0.2). Which tokens go to the cloud is drawn at random. The server "
        "holds no model and takes no processor time: it says what the edge would say, or another "
        "token; the prefix decides which, and of each ten routed tokens as many agree as --agree "
        "asks. Shown: t, the edge alone with "
        "its head; measured, milliseconds a token after the first; formula, t + rL in step and "
        "t + r(1-a)L ahead, where the window is never full; model, an event model of W requests "
        "out for a long text of the same r and a; here, that model for the text at hand, whose few "
        "routed tokens are drawn; hidden, the share of the calls' latency that the text did not "
        "wait for; calls, and those in vain; bytes of a cloud token with headers and calls in "
        "vain; and a hash of the text, which does not depend on W. The formulas know of no "
        "--bandwidth and --loss: what these cost is the difference.\n\n"
        "--as-paper compares the first --routed, --latency and --ahead above 0 with the way of "
        "the paper's published demo, and each of its habits alone: waiting for each call, the "
        "whole text evaluated for each token, a new connection for each call, text in place of "
        "ids, 16 tokens asked for and one used. Text is made of a vocabulary of the benchmark's "
        "own, 5 bytes a token. There the cloud takes 20 ms a token and a new connection two round "
        "trips (TCP and TLS 1.3), if not said otherwise.\n\n"
        "  mizzle bench model --shape qwen2.5-0.5b --type q8_0 -t 2\n"
        "  mizzle bench model -m model.gguf -p 512 -n 128 -o json\n"
        "  mizzle bench kernels --only matmul_q8 --plot roofline.svg\n"
        "  mizzle bench limits\n"
        "  mizzle bench route --edge-ms 10 --latency 200 --ahead 0,1,4 -n 1000\n"
        "  mizzle bench route --shape qwen2.5-0.5b --latency 170 --as-paper",
    .groups = groups,
    .run = run,
};
