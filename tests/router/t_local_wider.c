/* A large model in this process whose vocabulary is not the small one's to the end: ids that both
 * have are used, and the text is that of the same pair behind HTTP. */
#include "router/mizzle.h"
#include "tests/support/test.h"
#include "tools/lab/stand_in/stand_in.h"
#include "weights/gguf_write.h"

#define EDGE  "weights/milli/edge-0.5.gguf"
#define LARGE "weights/milli/cloud.gguf"

enum { MOST = 256 };

struct text {
    uint32_t ids[MOST];
    int from[MOST];
    size_t n;
    struct mizzle_stats stats;
};

/* Copy a model of the demo with six more rows: three are new added tokens, of which the first is
 * likely wherever "." is, and three are padding. */
static const char *widen(const char *from, const char *name)
{
    enum { MORE = 6, DOT = 13 };
    static char new[MORE][16];
    struct weights *w;
    struct ggufw *g;
    const char *path = in_scratch(name);
    CHECK(weights_open(&w, from, NULL) == OK && ggufw_open(&g, path, NULL) == OK);
    for (size_t i = 0; i < weights_nkv(w); i++) {
        const struct kv *kv = weights_kv(w, i);
        struct str *strs = calloc(kv->count + MORE, sizeof(*strs));
        int32_t *types = calloc(kv->count + MORE, sizeof(*types));
        for (size_t k = 0; k < kv->count + MORE; k++) {
            bool old = k < kv->count;
            char *text = old ? NULL : new[k - kv->count];
            if (!old)
                snprintf(text, sizeof(new[0]), "<new%zu>", k - kv->count);
            strs[k] = old && kv->strs ? kv->strs[k] : (struct str){ text, old ? 0 : strlen(text) };
            types[k] = k < kv->count + MORE / 2 ? 4 : 5; /* user defined, unused */
        }
        bool list = kv->type == KV_ARR;
        if (list && kv->elem == KV_I32)
            memcpy(types, kv->data, kv->count * sizeof(*types));
        if (list && strstr(kv->key.p, ".tokens"))
            ggufw_strs(g, kv->key.p, strs, kv->count + MORE);
        else if (list && strstr(kv->key.p, ".token_type"))
            ggufw_i32s(g, kv->key.p, types, kv->count + MORE);
        else if (strncmp(kv->key.p, "mizzle.", 7) != 0 && !strstr(kv->key.p, ".vocab_size"))
            ggufw_kv(g, kv);
        free(strs);
        free(types);
    }
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < weights_ntensors(w); i++) {
            const struct tensor *t = weights_tensor(w, i);
            bool grows = strstr(t->name, "token_embd") || !strcmp(t->name, "output.weight");
            size_t shape[2] = { t->shape[0] + (grows ? MORE : 0), t->shape[1] };
            size_t row = t->bytes / t->shape[0];
            if (pass)
                ggufw_data(g, t->data, t->bytes);
            else
                ggufw_tensor(g, t->name, t->type, t->ndim, shape);
            char *last = malloc(row);
            memcpy(last, (const char *)t->data + DOT * row % t->bytes, row);
            for (size_t b = 1; b < row;
                 b += 34) /* the half in front of each block: 1.5 or 2 times */
                last[b] = (char)(last[b] + 2);
            for (size_t k = 0; pass && grows && k < MORE; k++)
                ggufw_data(g, last, row);
            free(last);
        }
    struct err err = { "" };
    CHECK_MSG(ggufw_close(g, true, &err) == OK, "%s", err.msg);
    weights_close(w);
    return path;
}

static bool on_token(void *arg, const struct mizzle_token *t)
{
    struct text *x = arg;
    CHECK(x->n < MOST);
    x->ids[x->n] = t->id;
    x->from[x->n++] = t->source;
    return true;
}

/* Write a text of a pair, the larger of which is at the URL, if that is not NULL. */
static void write_text(struct text *x, const char *edge, const char *large, const char *url,
                       const char *prompt, size_t i)
{
    const struct mizzle_prompt p = { .size = sizeof(p), .text = prompt };
    struct mizzle_options o;
    struct mizzle_error why = { .size = sizeof(why) };
    struct mizzle *m;
    mizzle_options_init(&o, sizeof(o));
    o.model = edge;
    o.cloud_model = url ? NULL : large;
    o.cloud_url = url;
    o.policy = "always";
    o.kv = "f32"; /* as the stand-in has it */
    o.max_tokens = 60;
    o.cloud_tokens = i % 2 ? 8 : 1;
    o.ahead = i / 2;
    CHECK_MSG(mizzle_open(&m, &o, &why) == MIZZLE_OK, "%s", why.message);
    *x = (struct text){ .stats.size = sizeof(x->stats) };
    CHECK(mizzle_generate(m, &p, on_token, x, &x->stats, NULL) == MIZZLE_OK);
    CHECK(mizzle_close(m) == MIZZLE_OK);
}

int main(void)
{
    const struct stand_in_options so = { .model = widen(LARGE, "wider.gguf") };
    static const char prompt[] = "Question: Where can you search for the lekikupu?\nAnswer:";
    static struct text here, there;
    struct stand_in *server;
    CHECK(stand_in_open(&server, &so, NULL) == OK);
    /* Where the large model's token is none of the small one's, the call fails. */
    for (size_t i = 0; i < 4; i++) {
        write_text(&here, EDGE, so.model, NULL, prompt, i);
        write_text(&there, EDGE, NULL, stand_in_url(server), prompt, i);
        CHECK(here.n == there.n && !memcmp(here.ids, there.ids, sizeof(here.ids)) &&
              !memcmp(here.from, there.from, sizeof(here.from)));
        CHECK(here.stats.cloud > 10 && here.stats.failed && here.stats.held.fault);
        CHECK(here.stats.failed == there.stats.failed && here.stats.calls == there.stats.calls);
    }
    stand_in_close(server);
    /* A token that the large model does not have cannot be sent. */
    const char *edge = widen(EDGE, "small.gguf");
    write_text(&here, edge, LARGE, NULL, "The <new2> is", 0);
    CHECK(here.n && here.stats.held.unfit == here.n);
    write_text(&here, edge, LARGE, NULL, prompt, 0);
    CHECK(here.n && here.stats.cloud == here.n);
    return 0;
}
