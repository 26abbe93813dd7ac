/* cmd_convert.c - `mizzle convert IN OUT --type T`: write any model that Mizzle reads as GGUF. */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/sys/os.h"
#include "kernels/sys/pool.h"
#include "tools/command.h"
#include "tools/convert_plan.h"
#include "tools/convert_vocab.h"
#include "tools/cli/progress.h"
#include "tools/cli/setup.h"
#include "weights/find.h"
#include "weights/gguf_write.h"
#include "weights/imatrix.h"
#include "weights/quant.h"
#include "weights/weights.h"

/* Values that one thread decodes at a time, a multiple of every block, and values that are written
 * at a time (4 MB of f32). */
enum { CHUNK = 4096, BATCH = 256 * CHUNK };

static const char *type_name, *imatrix_path;
static bool pure, quiet;

static const struct option_group own = {
    "Conversion",
    (const struct option[]){
        { "--type", NULL, OPTION_STR, &type_name, "TYPE",
          "Store matrices as f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_K, q5_K, q6_K, or as "
          "one of the mixes q4_K_M and q5_K_M, which give some layers' value and down projections "
          "q6_K (required)" },
        { "--pure", NULL, OPTION_FLAG, &pure, NULL,
          "Give every matrix the type asked for (default: quantise the output head, and an "
          "embedding that is also the head, as q6_K or q8_0, as llama-quantize does)" },
        { "--imatrix", NULL, OPTION_STR, &imatrix_path, "FILE",
          "Weigh errors by this importance matrix, of mizzle imatrix or llama-imatrix (default: "
          "all alike)" },
        OPTION_ROW_THREADS,
        OPTION_ROW_QUIET(&quiet),
        OPTION_END,
    },
};

/* One conversion. */
struct job {
    const struct weights *w;
    struct imatrix *imatrix; /* NULL: all errors count alike */
    struct pool *pool;
    struct ggufw *g;
    struct convert_plan plan;
    int *types;          /* type of each tensor of w in the new file */
    float *floats;       /* [threads][2][CHUNK]: values and weights */
    unsigned char *out;  /* one batch, encoded */
    size_t bytes, total; /* bytes of the source, read so far and in total */
    struct progress_count shown;
};

/* True for the types with blocks and scales. */
static bool cmd_convert_quantised(int type)
{
    size_t values, bytes;
    return wtype_block(type, &values, &bytes) && values > 1;
}

/* Say on stderr how many tensors have rows that are no whole number of blocks, and their types. */
static void say_fallbacks(const bool *fell_back, const struct job *job)
{
    static const int types[] = { W_Q5_0, W_Q5_1, W_Q8_0, W_F16 };
    char list[128] = "";
    const struct tensor *first = NULL;
    size_t at = 0;
    for (size_t k = 0; k < sizeof(types) / sizeof(*types); k++) {
        size_t count = 0;
        for (size_t i = weights_ntensors(job->w); i-- > 0;)
            if (fell_back[i] && job->types[i] == types[k]) {
                first =
                    !first || weights_tensor(job->w, i) < first ? weights_tensor(job->w, i) : first;
                count++;
            }
        if (count)
            at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%zu become %s", at ? ", " : "",
                                   count, wtype_name(types[k]));
    }
    struct err name;
    if (first) {
        err_set(&name, OK, "%s", first->name);
        fprintf(stderr,
                "mizzle convert: tensors whose rows are no whole number of blocks: %s (the first: "
                "%s)\n",
                list, name.msg);
    }
}

/* Find the weights for a tensor, NULL when there are none. Their number must be the row length,
 * for each expert of a tensor with three dimensions. */
static int cmd_convert_weights(const struct imatrix_entry **out, const struct job *job,
                               const struct tensor *t, struct err *err)
{
    size_t want = t->ndim ? t->shape[t->ndim - 1] : 1;
    *out = job->imatrix ? imatrix_find(job->imatrix, t->name) : NULL;
    if (t->ndim == 3)
        want *= t->shape[0]; /* below the tensor's size */
    if (*out && (*out)->n != want)
        return err_set(err, ERR_FORMAT, "%s: %s: expected %zu values, found %zu", imatrix_path,
                       t->name, want, (*out)->n);
    return OK;
}

/* Check the importance matrix against all tensors to be quantised, and say on stderr which of them
 * it does not have. */
static int check_imatrix(const struct job *job, struct err *err)
{
    struct err list = { "" };
    size_t missing = 0, found = 0, at = 0;
    for (size_t i = 0; job->imatrix && i < weights_ntensors(job->w); i++) {
        const struct tensor *t = weights_tensor(job->w, i);
        const struct imatrix_entry *e;
        if (!cmd_convert_quantised(job->types[i]))
            continue;
        int code = cmd_convert_weights(&e, job, t, err);
        if (code != OK)
            return code;
        if (e) {
            found++;
        } else if (missing++ < 4) {
            struct err name;
            err_set(&name, OK, "%.48s", t->name);
            at += (size_t)snprintf(list.msg + at, sizeof(list.msg) - at, "%s%s", at ? ", " : "",
                                   name.msg);
        }
    }
    if (missing && !found)
        return err_set(err, ERR_FORMAT, "%s: expected values for tensors of this model, found none",
                       imatrix_path);
    if (missing)
        fprintf(stderr, "mizzle convert: %s has no values for %zu tensors: %s%s\n", imatrix_path,
                missing, list.msg, missing > 4 ? ", ..." : "");
    return OK;
}

/* Choose the type of every tensor before anything is written, so that a tensor that cannot be read
 * is an error early. */
static int cmd_convert_plan(struct job *job, struct err *err)
{
    size_t n = weights_ntensors(job->w);
    job->types = calloc(n ? n : 1, sizeof(*job->types));
    bool *fell_back = calloc(n ? n : 1, sizeof(*fell_back));
    int code = job->types && fell_back ? OK : err_set(err, ERR_NOMEM, "out of memory");
    convert_plan_model(&job->plan, job->w);
    for (size_t i = 0; code == OK && i < n; i++) {
        const struct tensor *t = weights_tensor(job->w, i);
        if (!quant_known(t->type))
            code = quant_refuse(weights_path(job->w), t, err);
        else if (t->ndim > 4)
            code =
                err_set(err, ERR_FORMAT, "%s: tensor %s: expected at most 4 dimensions, found %u",
                        weights_path(job->w), t->name, t->ndim);
        else
            job->types[i] =
                convert_plan_type(&job->plan, t->name, t->ndim, t->shape, &fell_back[i]);
        job->total += t->bytes;
    }
    if (code == OK)
        code = check_imatrix(job, err);
    if (code == OK)
        say_fallbacks(fell_back, job);
    free(fell_back);
    return code;
}

static bool cmd_convert_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
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
        else if (strcmp(kv->key.p, "mizzle.bytes") != 0 &&
                 strcmp(kv->key.p, "general.file_type") != 0 &&
                 strcmp(kv->key.p, "general.quantization_version") != 0 &&
                 strcmp(kv->key.p, "general.alignment") != 0 &&
                 !cmd_convert_starts(kv->key.p, "quantize.imatrix.") &&
                 !(folder && cmd_convert_starts(kv->key.p, "tokenizer.")))
            ggufw_kv(job->g, kv);
    }
    const struct tensor *embedding = weights_find(w, "token_embd.weight");
    int code = folder ? convert_vocab(job->g, w, embedding->shape[0], err) : OK;
    ggufw_u32(job->g, "general.file_type", job->plan.target->file_type); /* last, in either case */
    ggufw_u32(job->g, "general.quantization_version", 2);
    if (job->imatrix) {
        ggufw_str(job->g, "quantize.imatrix.file", imatrix_path);
        ggufw_u32(job->g, "quantize.imatrix.entries_count", (uint32_t)imatrix_count(job->imatrix));
        ggufw_u32(job->g, "quantize.imatrix.chunks_count", imatrix_chunks(job->imatrix));
    }
    return code;
}

/* A batch of values of one tensor, shared by the threads that encode it. */
struct batch {
    const struct job *job;
    const struct tensor *t;
    const struct imatrix_entry *weights; /* NULL: all errors count alike */
    int type;
    size_t first, count;              /* first value of the batch in the tensor, number of values */
    _Atomic uint32_t largest;         /* bits of the largest magnitude, see note_largest */
    size_t block_values, block_bytes; /* of the type to write */
};

/* Return the magnitude from which a value, or the f16 scale or minimum of its block, becomes
 * infinite in this type. */
static float type_limit(int type)
{
    static const float f16 = 65520, bf16 = 0x1.ffp127f;
    switch (type) {
    case W_F16:
    case W_Q4_1:
    case W_Q5_1:
        return f16;
    case W_BF16:
        return bf16;
    case W_Q8_0:
        return f16 * 127;
    case W_Q4_0:
        return f16 * 8;
    case W_Q5_0:
        return f16 * 16;
    case W_Q4_K:
    case W_Q5_K:
        return f16 * 63;
    case W_Q6_K:
        return f16 * 31 * 127;
    default:
        return INFINITY;
    }
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
    if (!finite && cmd_convert_quantised(b->type))
        most = INFINITY;
    memcpy(&bits, &most, sizeof(bits));
    while (bits > known && !atomic_compare_exchange_weak(&b->largest, &known, bits))
        ;
}

/* Copy to w[n] the weights of the values of a tensor from `first` on: those of a row repeat in
 * every row, or in every row of an expert. */
static void copy_weights(float *w, const struct batch *b, size_t first, size_t n)
{
    const struct tensor *t = b->t;
    size_t cols = t->shape[t->ndim - 1], expert = t->ndim == 3 ? cols * t->shape[1] : SIZE_MAX;
    for (size_t done = 0, some; done < n; done += some) {
        size_t at = first + done, col = at % cols;
        some = n - done < cols - col ? n - done : cols - col;
        memcpy(w + done, b->weights->weights + at / expert * cols + col, some * sizeof(*w));
    }
}

/* Thread function: decode chunks [from, to) of the batch and encode them into job->out. */
static void cmd_convert_encode(void *arg, size_t thread, size_t from, size_t to)
{
    struct batch *b = arg;
    float *x = b->job->floats + thread * 2 * CHUNK, *w = b->weights ? x + CHUNK : NULL;
    for (size_t c = from; c < to; c++) {
        size_t at = c * CHUNK, n = b->count - at < CHUNK ? b->count - at : CHUNK;
        /* cmd_convert_plan checked the type */
        weights_floats(x, b->t, b->first + at, n, weights_path(b->job->w), NULL);
        note_largest(b, x, n);
        if (w)
            copy_weights(w, b, b->first + at, n);
        quant_encode(b->job->out + at / b->block_values * b->block_bytes, b->type, x, w, n);
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
    int code = cmd_convert_quantised(type) ? cmd_convert_weights(&b.weights, job, t, err) : OK;
    if (code != OK)
        return code;
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

/* Refuse files that are not models: GGUF files of another kind, such as an importance matrix or an
 * adapter, and those without an architecture, because no program could run the new file. */
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
    struct stat a, b;
    if (strcmp(out, "-") == 0)
        return err_set(err, ERR_ARG, "-: expected a file to write, found standard output");
    if (stat(out, &b) != 0)
        return OK;
    if (S_ISDIR(b.st_mode))
        return err_set(err, ERR_ARG, "%s: expected a file to write, found a folder", out);
    bool importance =
        imatrix_path && stat(imatrix_path, &a) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    if (importance || weights_reads(w, out))
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
    job->plan.pure = pure;
    job->plan.weighted = imatrix_path != NULL;
    code = cmd_convert_source(w, in, err);
    if (code == OK)
        code = check_output(w, out, err);
    if (code == OK && imatrix_path)
        code = imatrix_open(&job->imatrix, imatrix_path, err);
    if (code == OK)
        code = cmd_convert_plan(job, err);
    if (code == OK)
        code = pool_open(&job->pool, engine_options.threads, err);
    if (code == OK) {
        job->floats = calloc(pool_threads(job->pool) * 2 * CHUNK, sizeof(float));
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
    imatrix_close(job->imatrix);
    weights_close(w);
    return code;
}

static int cmd_convert_main(int argc, char **argv)
{
    struct job job = { 0 };
    struct err err;
    int nargs, status = options_parse(&cmd_convert, argc, argv, &nargs);
    if (status >= 0)
        return status;
    if (nargs != 2 || !type_name) {
        fprintf(stderr, "mizzle convert: expected IN OUT --type TYPE; see mizzle convert --help\n");
        return EXIT_USAGE;
    }
    char in[FIND_PATH];
    job.plan.target = convert_target(type_name);
    int code = job.plan.target ? find_model(in, argv[1], &err)
                               : err_set(&err, ERR_ARG, "--type: expected %s, found %s",
                                         convert_target_names(), type_name);
    setup_catch_interrupts();
    if (code == OK)
        code = convert(&job, in, argv[2], &err);
    return command_fail("convert", code, &err);
}

const struct command cmd_convert = {
    .name = "convert",
    .summary = "convert a model to GGUF, with another tensor type",
    .args = "IN OUT --type TYPE",
    .description =
        "Reads a Hugging Face folder or a GGUF file and writes a GGUF file that llama.cpp can "
        "read. "
        "Matrices are stored in the type asked for; norms and biases stay F32. Matrices whose rows "
        "are no multiple of 256 values get q5_0, q5_1 or q8_0 instead of q4_K, q5_K or q6_K, and "
        "F16 "
        "if they are no multiple of 32 either. Types are chosen as llama-quantize chooses them; "
        "K-quants are searched for the least error. The tokenizer of a folder is written into the "
        "file.\n\n"
        "OUT appears only once it is complete, and replaces any file of that name.\n\n"
        "  mizzle convert Qwen2.5-0.5B-Instruct qwen.gguf --type q8_0\n"
        "  mizzle convert qwen-f16.gguf small.gguf --type q4_K_M --imatrix qwen.imatrix\n"
        "  mizzle convert qwen.gguf all.gguf --type q4_0 --pure\n",
    .groups = (const struct option_group *const[]){ &own, NULL },
    .run = cmd_convert_main,
};
