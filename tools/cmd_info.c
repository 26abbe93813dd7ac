/* cmd_info.c - `mizzle info`: show what a file holds, or what this processor can run. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sys/cpu.h"
#include "kernels/kernels.h"
#include "tools/cli/escaped.h"
#include "tools/command.h"
#include "weights/pth.h"
#include "weights/weights.h"

static bool json, tensors, ops;

static const struct option_group own = {
    "Report",
    (const struct option[]){
        { "--json", NULL, OPTION_FLAG, &json, NULL, "Print one JSON object on stdout" },
        { "--tensors", NULL, OPTION_FLAG, &tensors, NULL, "List every tensor of the file" },
        { "--ops", NULL, OPTION_FLAG, &ops, NULL,
          "Without FILE: list the operations that each kernel set implements" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

/* ---- this machine ---- */

/* List the operations that a kernel set implements itself. */
static void print_ops(const struct kernels *set)
{
    struct kernels all;
    kernels_own(&all, set);
    printf("  %-12s", set->isa);
#define X(op)   \
    if (all.op) \
        printf(" %s", #op);
    KERNEL_OPS(X)
#undef X
    putchar('\n');
}

/* Print the processor, the kernel sets it can run and the one that would be chosen. */
static int machine(struct err *err)
{
    struct kernels chosen;
    unsigned cpu = cpu_detect();
    const char *isa = getenv("MIZZLE_ISA");
    int code = kernels_pick(&chosen, isa && *isa ? isa : NULL, cpu, err);
    if (code != OK)
        return code;
    json_t *sets = json_array();
    for (size_t i = 0; i < kernels_nsets; i++)
        if (kernels_ready(kernels_sets[i], cpu))
            json_array_append_new(sets, json_string(kernels_sets[i]->isa));
    if (json) {
        json_t *root =
            json_pack("{s:o, s:o, s:s, s:{s:I, s:I, s:I}}", "cpu",
                      escaped_json(cpu_name(), strlen(cpu_name())), "sets", sets, "chosen",
                      chosen.isa, "tune", "panels", (json_int_t)chosen.tune.panels, "run",
                      (json_int_t)chosen.tune.run, "ahead", (json_int_t)chosen.tune.ahead);
        json_dumpf(root, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(root);
        return OK;
    }
    fputs("cpu     ", stdout);
    escaped_put(cpu_name(), strlen(cpu_name()));
    fputs("\nsets   ", stdout);
    for (size_t i = 0; i < json_array_size(sets); i++)
        printf(" %s", json_string_value(json_array_get(sets, i)));
    printf("\nchosen  %s\ntune    panels=%zu run=%zu ahead=%zu\n", chosen.isa, chosen.tune.panels,
           chosen.tune.run, chosen.tune.ahead);
    json_decref(sets);
    if (ops) {
        puts("\noperations of each set; what is missing comes from the set before");
        for (size_t i = 0; i < kernels_nsets; i++)
            if (kernels_ready(kernels_sets[i], cpu))
                print_ops(kernels_sets[i]);
    }
    return OK;
}

/* ---- a file ---- */

/* An open file: exactly one of w and p is set. */
struct source {
    struct weights *w; /* GGUF, safetensors or folder */
    struct pth *p;     /* PyTorch checkpoint */
    const char *path;
};

/* Return the number of tensors. */
static size_t cmd_info_count(const struct source *s)
{
    return s->w ? weights_ntensors(s->w) : pth_ntensors(s->p);
}

static const struct tensor *cmd_info_at(const struct source *s, size_t i)
{
    return s->w ? weights_tensor(s->w, i) : pth_tensor(s->p, i);
}

/* Return the number of values in t, 0 for an unknown type. */
static size_t values_of(const struct tensor *t)
{
    size_t values, bytes;
    return wtype_block(t->type, &values, &bytes) ? t->bytes / bytes * values : 0;
}

/* Totals over tensors. bytes and values are doubles because a header may state any size. */
struct sum {
    size_t tensors;
    double bytes, values;
};

/* Return the totals of one type; of all types where type is -1. */
static struct sum sum_type(const struct source *s, int type)
{
    struct sum sum = { 0, 0, 0 };
    for (size_t i = 0; i < cmd_info_count(s); i++) {
        const struct tensor *t = cmd_info_at(s, i);
        if (type >= 0 && t->type != type)
            continue;
        sum.tensors++;
        sum.bytes += (double)t->bytes;
        sum.values += (double)values_of(t);
    }
    return sum;
}

/* Reports list types in the order of ggml's numbers, then those that only safetensors has. */
enum { FIRST_OWN = W_U8, TYPES_GGML = 64, TYPES_ALL = TYPES_GGML + 16 };

static int type_at(int i)
{
    return i < TYPES_GGML ? i : FIRST_OWN + i - TYPES_GGML;
}

/* Return the key without the prefix of the architecture, or NULL if the key has another prefix or
 * is not a number: "qwen2.block_count" gives "block_count" if arch is "qwen2". */
static const char *shape_key(const struct kv *kv, struct str arch)
{
    if (!arch.n || kv->key.n < arch.n + 2 || memcmp(kv->key.p, arch.p, arch.n) != 0 ||
        kv->key.p[arch.n] != '.' || kv->type == KV_ARR || kv->type == KV_STR)
        return NULL;
    return kv->key.p + arch.n + 1;
}

static const char *cmd_info_format(const struct source *s)
{
    return s->w ? weights_format(s->w) : "pth";
}

/* Return the string under the key, empty if there is none. */
static struct str text_key(const struct source *s, const char *key)
{
    struct str v = { "", 0 };
    if (s->w)
        weights_str(s->w, key, &v);
    return v;
}

/* Return the size of the vocabulary in the file, 0 if it holds none. */
static size_t token_count(const struct source *s)
{
    const struct kv *kv = s->w ? weights_key(s->w, "tokenizer.ggml.tokens") : NULL;
    return kv ? kv->count : 0;
}

/* The size of a router, and what it reads. CITER's checkpoints name no tap. */
struct facts {
    size_t hidden, width; /* of a network */
    size_t contexts;      /* rows of a table; 0 for a network */
    struct str tap;
};

/* More that a router's metadata may say: the key, and the label for people. */
static const char *const router_entries[][2] = {
    { "model_name", "  model" }, { "model", "  fingerprint" }, { "weights", "  weights" },
    { "task", "  task" },        { "share", "  share" },
};

enum { ROUTER_ENTRIES = sizeof(router_entries) / sizeof(router_entries[0]) };

/* Fill *f and return true if the file is a router: Mizzle's own forms or CITER's checkpoint. */
static bool router_facts(struct facts *f, const struct source *s)
{
    const struct tensor *t =
        s->w ? weights_find(s->w, "router.w1") : pth_find(s->p, "mlp.0.weight");
    const struct tensor *table = s->w ? weights_find(s->w, "context.table") : NULL;
    *f = (struct facts){ .tap = text_key(s, "tap") };
    if (!f->tap.n)
        f->tap = (struct str){ "final", 5 };
    if (t && t->ndim == 2 && (s->w || pth_find(s->p, "mlp.4.weight"))) {
        f->hidden = t->shape[1];
        f->width = t->shape[0];
        return true;
    }
    f->contexts = table && table->ndim == 2 ? table->shape[0] : 0;
    return f->contexts;
}

/* True for a file that holds a header alone: a tensor has a size, but its data is missing. */
static bool without_data(const struct source *s)
{
    for (size_t i = 0; i < cmd_info_count(s); i++)
        if (cmd_info_at(s, i)->bytes && !cmd_info_at(s, i)->data)
            return true;
    return false;
}

/* Return an integer if a double of this size is exact, else a real. */
static json_t *json_size(double v)
{
    return v < 9e15 ? json_integer((json_int_t)v) : json_real(v);
}

/* Return the list of all tensors. */
static json_t *json_tensors(const struct source *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < cmd_info_count(s); i++) {
        const struct tensor *t = cmd_info_at(s, i);
        json_t *shape = json_array();
        for (unsigned k = 0; k < t->ndim; k++)
            json_array_append_new(shape, json_size((double)t->shape[k]));
        json_array_append_new(list, json_pack("{s:o, s:s, s:o, s:o}", "name",
                                              escaped_json(t->name, strlen(t->name)), "type",
                                              wtype_name(t->type), "shape", shape, "bytes",
                                              json_size((double)t->bytes)));
    }
    return list;
}

/* Return the hyperparameters of the architecture as an object. */
static json_t *json_shape(const struct source *s, struct str arch)
{
    json_t *shape = json_object();
    for (size_t i = 0; s->w && i < weights_nkv(s->w); i++) {
        const struct kv *kv = weights_kv(s->w, i);
        const char *key = shape_key(kv, arch);
        double number;
        bool flag;
        json_t *v = NULL;
        if (!key)
            continue;
        if (weights_bool(s->w, kv->key.p, &flag))
            v = json_boolean(flag);
        else if (weights_f64(s->w, kv->key.p, &number))
            v = kv->type == KV_F32 || kv->type == KV_F64 ? json_real(number) : json_size(number);
        char *name = escaped_text(key, strlen(key));
        json_object_set_new(shape, name ? name : "", v ? v : json_null());
        free(name);
    }
    return shape;
}

/* Return a number from 0 to 1; what is none is shown as text, what is absent as null. */
static json_t *json_share(struct str s)
{
    char text[32] = "", *end = text;
    memcpy(text, s.p, s.n < sizeof(text) ? s.n : 0);
    double number = strtod(text, &end);
    bool sane = end > text && !*end && number >= 0 && number <= 1;
    return !s.n ? json_null() : sane ? json_real(number) : escaped_json(s.p, s.n);
}

/* Return a text, or null if it is absent. */
static json_t *json_maybe(struct str s)
{
    return s.n ? escaped_json(s.p, s.n) : json_null();
}

/* Return what the router says about itself, or null. */
static json_t *json_router(const struct source *s)
{
    struct facts f;
    if (!router_facts(&f, s))
        return json_null();
    json_t *root = json_object();
    if (f.contexts) {
        json_object_set_new(root, "contexts", json_size((double)f.contexts));
    } else {
        json_object_set_new(root, "hidden", json_size((double)f.hidden));
        json_object_set_new(root, "width", json_size((double)f.width));
        json_object_set_new(root, "tap", escaped_json(f.tap.p, f.tap.n));
    }
    json_object_set_new(root, "threshold", json_share(text_key(s, "threshold")));
    for (size_t i = 0; i < ROUTER_ENTRIES; i++) {
        const char *key = router_entries[i][0];
        struct str v = text_key(s, key);
        json_object_set_new(root, key, strcmp(key, "share") ? json_maybe(v) : json_share(v));
    }
    return root;
}

/* Print the report on a file as one JSON object. */
static void report_json(const struct source *s)
{
    struct str arch = text_key(s, "general.architecture"), name = text_key(s, "general.name");
    struct str vocab = text_key(s, "tokenizer.ggml.model");
    struct sum all = sum_type(s, -1);
    json_t *types = json_object(), *root = json_object();
    for (int i = 0; i < TYPES_ALL; i++) {
        struct sum sum = sum_type(s, type_at(i));
        if (sum.tensors)
            json_object_set_new(types, wtype_name(type_at(i)),
                                json_pack("{s:I, s:o}", "tensors", (json_int_t)sum.tensors, "bytes",
                                          json_size(sum.bytes)));
    }
    json_object_set_new(root, "file", escaped_json(s->path, strlen(s->path)));
    json_object_set_new(root, "format", json_string(cmd_info_format(s)));
    json_object_set_new(root, "architecture", json_maybe(arch));
    json_object_set_new(root, "name", json_maybe(name));
    json_object_set_new(root, "parameters", json_size(all.values));
    json_object_set_new(root, "bytes", json_size(all.bytes));
    json_object_set_new(root, "tensors", json_integer((json_int_t)all.tensors));
    json_object_set_new(root, "keys",
                        json_integer(s->w ? (json_int_t)weights_nkv(s->w) : (json_int_t)0));
    json_object_set_new(root, "types", types);
    json_object_set_new(root, "shape", json_shape(s, arch));
    json_object_set_new(root, "router", json_router(s));
    json_object_set_new(root, "tokenizer", json_maybe(vocab));
    json_object_set_new(root, "tokens", json_integer((json_int_t)token_count(s)));
    json_object_set_new(root, "has_data", json_boolean(!without_data(s)));
    if (tensors)
        json_object_set_new(root, "tensor_list", json_tensors(s));
    json_dumpf(root, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(root);
}

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
static void print_shape(const struct source *s, struct str arch)
{
    for (size_t i = 0; s->w && i < weights_nkv(s->w); i++) {
        const struct kv *kv = weights_kv(s->w, i);
        const char *key = shape_key(kv, arch);
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

static void print_tensors(const struct source *s)
{
    for (size_t i = 0; i < cmd_info_count(s); i++) {
        const struct tensor *t = cmd_info_at(s, i);
        printf("  %-8s [", wtype_name(t->type));
        for (unsigned k = 0; k < t->ndim; k++)
            printf("%s%zu", k ? "," : "", t->shape[k]);
        fputs("]  ", stdout);
        escaped_put(t->name, strlen(t->name));
        putchar('\n');
    }
}

static void print_router(const struct source *s)
{
    struct facts f;
    struct str threshold = text_key(s, "threshold");
    if (!router_facts(&f, s))
        return;
    if (f.contexts) {
        printf("%-14sa table of %zu contexts", "router", f.contexts);
    } else {
        printf("%-14s%zu wide, reads %zu values of tap ", "router", f.width, f.hidden);
        escaped_put(f.tap.p, f.tap.n);
    }
    fputs(threshold.n ? ", threshold " : ", no threshold", stdout);
    escaped_put(threshold.p, threshold.n);
    putchar('\n');
    for (size_t i = 0; i < ROUTER_ENTRIES; i++)
        print_text(router_entries[i][1], text_key(s, router_entries[i][0]));
}

/* Print the report on a file for people. */
static void cmd_info_report(const struct source *s)
{
    struct str arch = text_key(s, "general.architecture");
    struct sum all = sum_type(s, -1);
    print_text("file", (struct str){ s->path, strlen(s->path) });
    printf("%-14s%s, %zu tensors", "format", cmd_info_format(s), all.tensors);
    if (s->w)
        printf(", %zu keys", weights_nkv(s->w));
    putchar('\n');
    print_text("name", text_key(s, "general.name"));
    print_text("architecture", arch);
    print_shape(s, arch);
    print_router(s);
    printf("%-14s%.0f\n%-14s", "parameters", all.values, "bytes");
    print_bytes(all.bytes);
    puts(without_data(s) ? ", and the data is not in the file" : "");
    for (int i = 0; i < TYPES_ALL; i++) {
        struct sum sum = sum_type(s, type_at(i));
        if (!sum.tensors)
            continue;
        printf("  %-8s ", wtype_name(type_at(i)));
        print_bytes(sum.bytes);
        printf(" in %zu tensors\n", sum.tensors);
    }
    print_text("tokenizer", text_key(s, "tokenizer.ggml.model"));
    if (token_count(s))
        printf("%-14s%zu\n", "tokens", token_count(s));
    if (tensors)
        print_tensors(s);
}

/* True for a PyTorch file. A damaged one is recognised by its name, so that pth_open reports the
 * error. */
static bool is_pth(const char *path)
{
    size_t n = strlen(path);
    return pth_is(path) || (n > 4 && strcmp(path + n - 4, ".pth") == 0) ||
           (n > 3 && strcmp(path + n - 3, ".pt") == 0);
}

/* Open the file, reading as little as possible, and report on it. */
static int cmd_info_file(const char *path, struct err *err)
{
    struct source s = { NULL, NULL, path };
    int code = is_pth(path) ? pth_open(&s.p, path, err) : weights_open_header(&s.w, path, err);
    if (code == OK && json)
        report_json(&s);
    else if (code == OK)
        cmd_info_report(&s);
    weights_close(s.w);
    pth_close(s.p);
    return code;
}

static int cmd_info_main(int argc, char **argv)
{
    struct err err;
    int nargs, status = options_parse(&cmd_info, argc, argv, &nargs);
    if (status >= 0)
        return status;
    if (nargs > 1) {
        fprintf(stderr, "mizzle info: expected one FILE; see mizzle info --help\n");
        return EXIT_USAGE;
    }
    if (tensors && !nargs) {
        fprintf(stderr, "mizzle info: --tensors: expected with FILE; see mizzle info --help\n");
        return EXIT_USAGE;
    }
    return command_fail("info", nargs ? cmd_info_file(argv[1], &err) : machine(&err), &err);
}

const struct command cmd_info = {
    "info",
    "show what a file holds, or what this processor can run",
    "[FILE]",
    "Shows format, shape, types and size of FILE, which is a GGUF, safetensors or PyTorch file "
    "or a Hugging Face folder, of any architecture. Without FILE it shows the processor, the "
    "kernel sets that can run on it, the one that would be chosen, and how products walk the "
    "weights on this family of processors: the panels at once with one token, the "
    "multiply-adds of a product that a thread computes at a time, and the prefetch distance "
    "in bytes. For experiments, MIZZLE_ISA or --isa fixes them: "
    "avx2,panels=1,run=1048576,ahead=0.\n\n"
    "  mizzle info\n"
    "  mizzle info qwen.gguf --tensors\n"
    "  mizzle info Qwen2.5-0.5B --json\n",
    (const struct option_group *const[]){ &own, NULL },
    cmd_info_main,
};
