/* cmd_convert.c - `mizzle convert IN OUT --type T`: write any model that Mizzle reads as GGUF. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "kernels/sys/text.h"
#include "tools/command.h"
#include "tools/convert.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "weights/find.h"
#include "weights/gguf_write.h"
#include "weights/quant.h"
#include "weights/weights.h"

/* Values that one thread decodes at a time, a multiple of every block, and values that are written
 * at a time (4 MB of f32). */
enum { CHUNK = 4096, BATCH = 256 * CHUNK };

static const char *type_name;
static bool quiet;

static const struct option_group own = {
    "Conversion",
    (const struct option[]){
        { "--type", NULL, OPTION_STR, &type_name, "TYPE",
          "Store matrices as " CONVERT_TYPES "; with q4_0 the output head, and an embedding that "
          "is also the head, is q8_0 (required)" },
        OPTION_ROW_THREADS,
        OPTION_ROW_QUIET(&quiet),
        OPTION_END,
    },
};

struct job {
    const struct weights *w;
    struct pool *pool;
    struct ggufw *g;
    const struct convert_target *target;
    int *types;          /* type of each tensor of w in the new file */
    float *floats;       /* [threads][CHUNK] */
    unsigned char *out;  /* one batch, encoded */
    size_t bytes, total; /* bytes of the source, read so far and in total */
    struct progress_count shown;
};

/* Choose the type of every tensor before anything is written, so that a tensor that cannot be read
 * is an error early. Say on stderr how many have rows that are no whole number of blocks. */
static int cmd_convert_plan(struct job *job, struct err *err)
{
    size_t n = weights_ntensors(job->w);
    job->types = calloc(n ? n : 1, sizeof(*job->types));
    int code = job->types ? OK : err_set(err, ERR_NOMEM, "out of memory");
    const char *head =
        weights_find(job->w, "output.weight") ? "output.weight" : "token_embd.weight";
    const struct tensor *first = NULL;
    size_t fallen = 0;
    for (size_t i = 0; code == OK && i < n; i++) {
        const struct tensor *t = weights_tensor(job->w, i);
        bool fell_back = false;
        if (!quant_known(t->type))
            code = quant_refuse(weights_path(job->w), t, err);
        else if (t->ndim > 4)
            code =
                err_set(err, ERR_FORMAT, "%s: tensor %s: expected at most 4 dimensions, found %u",
                        weights_path(job->w), t->name, t->ndim);
        else
            job->types[i] =
                convert_plan_type(job->target->type, head, t->name, t->ndim, t->shape, &fell_back);
        first = fell_back && !first ? t : first;
        fallen += fell_back;
        job->total += t->bytes;
    }
    struct err name;
    if (code == OK && first) {
        err_set(&name, OK, "%s", first->name);
        fprintf(stderr,
                "mizzle convert: tensors whose rows are no whole number of blocks: %zu become F16 "
                "(the first: %s)\n",
                fallen, name.msg);
    }
    return code;
}

/* Copy the keys of the source, except those that describe its own bytes, and add the tokenizer if
 * the source is a folder. */
static int write_keys(struct job *job, struct err *err)
{
    const struct weights *w = job->w;
    bool folder = strcmp(weights_format(w), "folder") == 0;
    for (size_t i = 0; i < weights_nkv(w); i++) {
        const struct kv *kv = weights_kv(w, i);
        if (strcmp(kv->key.p, "mizzle.crc32") == 0)
            ggufw_checksum(job->g);
        else if (!text_among(kv->key.p, "mizzle.bytes, general.file_type, general.alignment, "
                                        "general.quantization_version") &&
                 strncmp(kv->key.p, "quantize.imatrix.", 17) != 0 &&
                 !(folder && strncmp(kv->key.p, "tokenizer.", 10) == 0))
            ggufw_kv(job->g, kv);
    }
    const struct tensor *embedding = weights_find(w, "token_embd.weight");
    int code = folder ? convert_vocab(job->g, w, embedding->shape[0], err) : OK;
    ggufw_u32(job->g, "general.file_type", job->target->file_type); /* last, in either case */
    ggufw_u32(job->g, "general.quantization_version", 2);
    return code;
}

/* A batch of values of one tensor, shared by the threads that encode it. */
struct batch {
    const struct job *job;
    const struct tensor *t;
    int type;
    size_t first, count;              /* first value of the batch in the tensor, number of values */
    _Atomic uint32_t largest;         /* bits of the largest magnitude, see note_largest */
    size_t block_values, block_bytes; /* of the type to write */
};

/* Return the magnitude from which a value, or the f16 scale of its block, becomes
 * infinite in this type. */
static float type_limit(int type)
{
    const float f16 = 65520, bf16 = 0x1.ffp127f;
    return type == W_F16    ? f16
           : type == W_BF16 ? bf16
           : type == W_Q8_0 ? f16 * 127
           : type == W_Q4_0 ? f16 * 8
                            : INFINITY;
}

/* Raise b->largest to the largest finite magnitude in x[n], or to infinity if a value to be
 * quantised is not finite: one would spoil its whole block. The bits of non-negative floats sort
 * like their values, so an integer compare is enough. */
static void note_largest(struct batch *b, const float *x, size_t n)
{
    float most = 0;
    uint32_t bits, known = b->largest;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite = finite && fabsf(x[i]) < INFINITY;
        most = fabsf(x[i]) > most && fabsf(x[i]) < INFINITY ? fabsf(x[i]) : most;
    }
    if (!finite && b->block_values > 1) /* the type has scales */
        most = INFINITY;
    memcpy(&bits, &most, sizeof(bits));
    while (bits > known && !atomic_compare_exchange_weak(&b->largest, &known, bits))
        ;
}

/* Thread function: decode chunks [from, to) of the batch and encode them into job->out. */
static void cmd_convert_encode(void *arg, size_t thread, size_t from, size_t to)
{
    struct batch *b = arg;
    float *x = b->job->floats + thread * CHUNK;
    for (size_t c = from; c < to; c++) {
        size_t at = c * CHUNK, n = b->count - at < CHUNK ? b->count - at : CHUNK;
        /* cmd_convert_plan checked the type */
        weights_floats(x, b->t, b->first + at, n, weights_path(b->job->w), NULL);
        note_largest(b, x, n);
        quant_encode(b->job->out + at / b->block_values * b->block_bytes, b->type, x, n);
    }
}

/* Write one tensor batch by batch, which keeps memory use independent of its size. ERR_FORMAT: a
 * value is too large for the new type. */
static int write_tensor(struct job *job, const struct tensor *t, int type, struct err *err)
{
    struct batch b = { .job = job, .t = t, .type = type };
    size_t values, bytes, n;
    wtype_block(t->type, &values, &bytes);
    wtype_block(type, &b.block_values, &b.block_bytes);
    n = t->bytes / bytes * values;
    for (b.first = 0; b.first < n; b.first += b.count) {
        b.count = n - b.first < BATCH ? n - b.first : BATCH;
        const unsigned char *src = (const unsigned char *)t->data + b.first / values * bytes;
        if (interrupted)
            return ERR_STOP;
        if (t->type == type) {
            ggufw_data(job->g, src, b.count / values * bytes);
        } else {
            pool_for(job->pool, (b.count + CHUNK - 1) / CHUNK, 1, cmd_convert_encode, &b);
            uint32_t bits = b.largest;
            float largest;
            memcpy(&largest, &bits, sizeof(largest));
            if (largest == INFINITY)
                return err_set(err, ERR_FORMAT,
                               "%s: tensor %s: expected finite values for %s, found inf or nan",
                               weights_path(job->w), t->name, wtype_name(type));
            if (largest >= type_limit(type))
                return err_set(err, ERR_FORMAT,
                               "%s: tensor %s: expected values below %g for %s, found %g",
                               weights_path(job->w), t->name, (double)type_limit(type),
                               wtype_name(type), (double)largest);
            ggufw_data(job->g, job->out, b.count / b.block_values * b.block_bytes);
        }
        os_dontneed(src, b.count / values * bytes);
        job->bytes += b.count / values * bytes;
        if (!quiet)
            progress_counted(&job->shown, job->bytes >> 20, job->total >> 20);
    }
    return OK;
}

/* Write keys, tensor headers and tensor data in the order of the file. */
static int cmd_convert_write_all(struct job *job, struct err *err)
{
    int code = write_keys(job, err);
    size_t n = weights_ntensors(job->w);
    for (size_t i = 0; code == OK && i < n; i++) {
        const struct tensor *t = weights_tensor(job->w, i);
        ggufw_tensor(job->g, t->name, job->types[i], t->ndim, t->shape);
    }
    for (size_t i = 0; code == OK && i < n; i++)
        code = write_tensor(job, weights_tensor(job->w, i), job->types[i], err);
    progress_wipe(&job->shown);
    return code;
}

/* Refuse files that are not models: GGUF files of another kind, such as an adapter, and those
 * without an architecture, because no program could run the new file. */
static int cmd_convert_source(const struct weights *w, const char *in, struct err *err)
{
    struct str type = { "model", 5 }, arch;
    weights_str(w, "general.type", &type);
    if (strcmp(weights_format(w), "safetensors") == 0)
        return err_set(err, ERR_FORMAT, "%s: expected a model folder or a GGUF file, found %s", in,
                       "a safetensors file alone: its folder has the config.json");
    if (type.n != 5 || memcmp(type.p, "model", 5) != 0)
        return err_set(err, ERR_FORMAT, "%s: general.type: expected model, found %.*s", in,
                       (int)(type.n < 64 ? type.n : 64), type.p);
    if (!weights_str(w, "general.architecture", &arch))
        return err_set(err, ERR_FORMAT,
                       "%s: general.architecture: expected the name of one, found none", in);
    return OK;
}

/* Reject an output that is a folder or a file of the model. Overwriting those that are read would
 * be safe, because the new file is renamed over a mapped one, but it is surely a mistake. */
static int check_output(const struct weights *w, const char *out, struct err *err)
{
    struct stat there;
    if (strcmp(out, "-") == 0)
        return err_set(err, ERR_ARG, "-: expected a file to write, found standard output");
    if (stat(out, &there) != 0)
        return OK;
    if (S_ISDIR(there.st_mode))
        return err_set(err, ERR_ARG, "%s: expected a file to write, found a folder", out);
    if (weights_reads(w, out))
        return err_set(err, ERR_ARG, "%s: input and output are the same file", out);
    return OK;
}

/* Open the source and everything the job needs, then write; the output is renamed into place by
 * ggufw_close only if all went well. */
static int convert(struct job *job, const char *in, const char *out, struct err *err)
{
    struct weights *w;
    int code = weights_open(&w, in, err);
    if (code != OK)
        return code;
    job->w = w;
    job->shown = (struct progress_count){ .what = "converting, MB", .since = os_now_ns() };
    code = cmd_convert_source(w, in, err);
    if (code == OK)
        code = check_output(w, out, err);
    if (code == OK)
        code = cmd_convert_plan(job, err);
    if (code == OK)
        code = pool_open(&job->pool, shared_options.engine.threads, err);
    if (code == OK) {
        job->floats = calloc(pool_threads(job->pool) * CHUNK, sizeof(float));
        job->out = malloc((size_t)BATCH * sizeof(float));
        if (!job->floats || !job->out)
            code = err_set(err, ERR_NOMEM, "%s: out of memory", in);
    }
    if (code == OK)
        code = ggufw_open(&job->g, out, err);
    if (code == OK) {
        struct err late;
        code = cmd_convert_write_all(job, err);
        int closed = ggufw_close(job->g, code == OK, &late);
        if (code == OK && closed != OK)
            code = err_set(err, closed == ERR_ARG ? ERR_FORMAT : closed, "%s", late.msg);
    }
    pool_close(job->pool);
    free(job->floats);
    free(job->out);
    free(job->types);
    weights_close(w);
    return code;
}

static int cmd_convert_main(int n, char **args, struct err *err)
{
    struct job job = { 0 };
    if (n != 2 || !type_name)
        return err_set(err, ERR_ARG, "expected IN OUT --type TYPE; see mizzle convert --help");
    char in[FIND_PATH];
    job.target = convert_target(type_name);
    int code = job.target ? find_model(in, args[0], err)
                          : err_set(err, ERR_ARG, "--type: expected " CONVERT_TYPES ", found %s",
                                    type_name);
    setup_catch_interrupts();
    if (code == OK)
        code = convert(&job, in, args[1], err);
    return code;
}

const struct command cmd_convert = {
    .name = "convert",
    .summary = "convert a model to GGUF, with another tensor type",
    .args = "IN OUT --type TYPE",
    .description =
        "Reads a Hugging Face folder or a GGUF file and writes a GGUF file that llama.cpp can "
        "read. Matrices are stored in the type asked for; norms and biases stay F32, and matrices "
        "whose rows are no multiple of 32 values get F16 instead of q8_0 or q4_0. The tokenizer of "
        "a folder is written into the file; a line names what GGUF cannot hold of it. llama.cpp's "
        "llama-quantize makes the other types, which run, too, from an F16 or F32 file.\n\n"
        "OUT appears only once it is complete, and replaces any file of that name.\n\n"
        "  mizzle convert Qwen2.5-0.5B-Instruct qwen.gguf --type q8_0\n"
        "  mizzle convert qwen-f16.gguf small.gguf --type q4_0\n",
    .groups = (const struct option_group *const[]){ &own, NULL },
    .run = cmd_convert_main,
    .most = 2,
};
