#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kv.h"
#include "tools/cli/escaped.h"
#include "tools/info/info.h"

/* Print a size in a binary unit, with one decimal. */
static void print_bytes(double n)
{
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
    int u = 0;
    for (; n >= 1024 && u < 4; u++)
        n /= 1024;
    printf(u ? "%.1f %s" : "%.0f %s", n, units[u]);
}

/* Print a labelled line, unless v is empty. */
static void print_text(const char *label, struct str v)
{
    if (!v.n)
        return;
    printf("%-14s", label);
    escaped_put(v.p, v.n);
    putchar('\n');
}

/* Print the hyperparameters of the architecture. */
static void print_shape(const struct info_source *s, struct str arch)
{
    for (size_t i = 0; i < weights_nkv(s->w); i++) {
        const struct kv *kv = weights_kv(s->w, i);
        const char *key = info_shape_key(kv, arch);
        double v;
        bool flag;
        if (!key)
            continue;
        fputs("  ", stdout);
        escaped_put(key, strlen(key));
        if (weights_bool(s->w, kv->key.p, &flag))
            printf(" = %s\n", flag ? "true" : "false");
        else if (weights_f64(s->w, kv->key.p, &v))
            printf(" = %.7g\n", v);
    }
}

static void print_tensors(const struct info_source *s)
{
    for (size_t i = 0; i < weights_ntensors(s->w); i++) {
        const struct tensor *t = weights_tensor(s->w, i);
        printf("  %12zu  %-8s [", t->bytes, wtype_name(t->type));
        for (unsigned k = 0; k < t->ndim; k++)
            printf("%s%zu", k ? "," : "", t->shape[k]);
        fputs("]  ", stdout);
        escaped_put(t->name, strlen(t->name));
        putchar('\n');
    }
}

static void print_router(const struct info_source *s)
{
    struct info_router f;
    struct str threshold = info_text(s, "threshold");
    if (!info_is_router(&f, s))
        return;
    if (f.contexts) {
        printf("%-14s%s, a table of %zu contexts", "router", f.name, f.contexts);
    } else {
        printf("%-14s%s, %zu wide, ", "router", f.name, f.width);
        if (f.members > 1)
            printf("mean of %zu members, ", f.members);
        printf("reads %zu values of tap ", f.hidden);
        escaped_put(f.tap.p, f.tap.n);
        if (f.features)
            printf(" and %zu features", f.features);
    }
    fputs(threshold.n ? ", threshold " : ", no threshold", stdout);
    escaped_put(threshold.p, threshold.n);
    putchar('\n');
    for (size_t i = 0; i < INFO_ROUTER_ENTRIES; i++)
        print_text(info_router_entries[i][1], info_text(s, info_router_entries[i][0]));
}

/* Print what running a model takes. */
static void print_memory(const struct info_model *m)
{
    printf("%-14sat -c %zu with %zu thread%s: weights ", "memory", m->context, m->threads,
           m->threads == 1 ? "" : "s");
    print_bytes((double)m->weights);
    fputs(", work ", stdout);
    print_bytes((double)m->work);
    fputs(", KV cache ", stdout);
    for (int i = 0; i < INFO_CACHES; i++) {
        print_bytes((double)m->cache[i]);
        printf(" in %s%s", kvcache_name((enum kvcache)i), i + 1 < INFO_CACHES ? " or " : "\n");
    }
}

/* Print what the engine would make of a model. */
static void print_model(const struct info_model *m)
{
    const struct {
        const char *label;
        const struct err *line;
    } refused[] = { { "no model", &m->no_model },
                    { "no text", &m->no_text },
                    { "no chat", &m->no_chat } };
    if (m->template)
        printf("%-14s%zu bytes\n", "template", m->template);
    if (m->chat)
        printf("%-14s%s%s\n", "chat", m->chat,
               m->template ? "" : ", a guess from its vocabulary: there is no template");
    if (m->has_sign)
        printf("%-14s%016" PRIx64 "\n", "fingerprint", m->fingerprint);
    print_text("router", (struct str){ m->router, strlen(m->router) });
    if (m->runs)
        print_memory(m);
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        print_text(refused[i].label,
                   (struct str){ refused[i].line->msg, strlen(refused[i].line->msg) });
}

void info_print(const struct info_source *s, const struct info_model *m, bool list)
{
    struct str arch = info_text(s, "general.architecture");
    struct info_sum all = info_sum_type(s, -1);
    print_text("file", (struct str){ s->path, strlen(s->path) });
    printf("%-14s%s, %zu tensors, %zu keys", "format", weights_format(s->w), all.tensors,
           weights_nkv(s->w));
    if (weights_shards(s->w) > 1)
        printf(", in %zu files", weights_shards(s->w));
    putchar('\n');
    print_text("name", info_text(s, "general.name"));
    print_text("architecture", arch);
    print_text("type", (struct str){ m->type, strlen(m->type) });
    print_shape(s, arch);
    print_router(s);
    printf("%-14s%.0f\n%-14s", "parameters", all.values, "bytes");
    print_bytes(all.bytes);
    printf(", %.2f bits a weight", info_bits(&all));
    puts(info_without_data(s) ? ", and the data is not in the file" : "");
    for (int i = 0; i < INFO_TYPES; i++) {
        struct info_sum sum = info_sum_type(s, info_type_at(i));
        if (!sum.tensors)
            continue;
        printf("  %-8s ", wtype_name(info_type_at(i)));
        print_bytes(sum.bytes);
        printf(" in %zu tensor%s, %.2f bits a weight\n", sum.tensors, sum.tensors == 1 ? "" : "s",
               info_bits(&sum));
    }
    print_text("tokenizer", info_tokenizer(s, m));
    if (info_tokens(s) || m->ids)
        printf("%-14s%zu\n", "tokens", info_tokens(s) ? info_tokens(s) : m->ids);
    if (m->is)
        print_model(m);
    if (list)
        print_tensors(s);
}
