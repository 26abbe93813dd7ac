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
#include "tools/convert_vocab.h"
#include "tools/cli/setup.h"
#include "weights/find.h"
#include "weights/gguf_write.h"
#include "weights/quant.h"
#include "weights/weights.h"

/* Values that one thread decodes at a time, and values that are written at a time (4 MB of f32). */
enum { CHUNK = 4096, BATCH = 256 * CHUNK, GROUP_VALUES = 32 };

static const char *type_name;
static size_t threads;
static bool pure, quiet;

static const struct option_group own = {
    "Conversion",
    (const struct option[]){
        { "--type", NULL, OPTION_STR, &type_name, "TYPE",
          "Store matrices as f32, f16, bf16, q8_0 or q4_0 (required)" },
        { "--pure", NULL, OPTION_FLAG, &pure, NULL,
          "With q4_0: write the output head as q4_0 too (default: q8_0 for the head, and for an "
          "embedding that is also the head; llama-quantize writes q6_k there)" },
        { "--threads", "-t", OPTION_SIZE, &threads, "N",
          "Compute with N threads (default: all processors)" },
        { "--quiet", "-q", OPTION_FLAG, &quiet, NULL, "Show no progress on the terminal" },
        { NULL, NULL, OPTION_FLAG, NULL, NULL, NULL },
    },
};

/* One conversion. */
struct job {
    const struct weights *w;
    struct pool *pool;
    struct ggufw *g;
    int type;
    int *types;          /* type of each tensor of w in the new file */
    float *floats;       /* [threads][CHUNK] */
    unsigned char *out;  /* one batch, encoded */
    uint64_t begun;      /* start time, for the progress line */
    size_t bytes, total; /* bytes of the source, read so far and in total */
    bool shown;          /* true once the progress line was printed */
};

/* Return the value of general.file_type, as in llama.cpp's llama_ftype. */
static uint32_t file_type(int type)
{
    return type == W_F32 ? 0 : type == W_F16 ? 1 : type == W_Q4_0 ? 2 : type == W_Q8_0 ? 7 : 32;
}

/* True for the types with blocks and scales. */
static bool cmd_convert_quantised(int type)
{
    return type == W_Q8_0 || type == W_Q4_0;
}

/* Return the type to write t with: matrices take the requested type, norms and biases stay F32, as
 * in llama.cpp. *fell_back is set if the rows of t do not divide into blocks. */
static int type_for(const struct job *job, const struct tensor *t, bool *fell_back)
{
    bool head =
        strcmp(t->name, "output.weight") == 0 ||
        (strcmp(t->name, "token_embd.weight") == 0 && !weights_find(job->w, "output.weight"));
    if (t->ndim < 2 || strstr(t->name, "_norm.weight"))
        return W_F32;
    if (!cmd_convert_quantised(job->type))
        return job->type;
    if (t->shape[t->ndim - 1] % GROUP_VALUES) {
        *fell_back = true;
        return W_F16;
    }
    return head && job->type == W_Q4_0 && !pure ? W_Q8_0 : job->type;
}

/* Choose the type of every tensor before anything is written, so that a tensor that cannot be read
 * is an error early. Report on stderr how many tensors fell back to F16. */
static int cmd_convert_plan(struct job *job, struct err *err)
{
    const struct tensor *first = NULL;
    size_t n = weights_ntensors(job->w), count = 0;
    job->types = calloc(n ? n : 1, sizeof(*job->types));
    if (!job->types)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const struct tensor *t = weights_tensor(job->w, i);
        bool fell_back = false;
        if (!quant_known(t->type))
            return quant_refuse(weights_path(job->w), t, err);
        if (t->ndim > 4)
            return err_set(err, ERR_FORMAT,
                           "%s: tensor %s: expected at most 4 dimensions, found %u",
                           weights_path(job->w), t->name, t->ndim);
        job->types[i] = type_for(job, t, &fell_back);
        job->total += t->bytes;
        count += fell_back;
        if (fell_back && !first)
            first = t;
    }
    if (first) {
        struct err name;
        err_set(&name, OK, "%s", first->name);
        fprintf(stderr,
                "mizzle convert: %zu tensors have rows that are no multiple of 32 and become F16 "
                "(the first: %s)\n",
                count, name.msg);
    }
    return OK;
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
                 !(folder && cmd_convert_starts(kv->key.p, "tokenizer.")))
            ggufw_kv(job->g, kv);
    }
    const struct tensor *embedding = weights_find(w, "token_embd.weight");
    int code = folder ? convert_vocab(job->g, w, embedding->shape[0], err) : OK;
    ggufw_u32(job->g, "general.file_type", file_type(job->type)); /* last, in either case */
    if (cmd_convert_quantised(job->type))
        ggufw_u32(job->g, "general.quantization_version", 2);
    return code;
}

/* Show the percentage on a terminal, from two seconds on; the last call erases it. */
static void progress(struct job *job, bool last)
{
    static const uint64_t second = 1000000000;
    uint64_t now = os_now_ns();
    if (quiet || !isatty(STDERR_FILENO) || (!job->shown && now - job->begun < 2 * second))
        return;
    job->shown = true;
    if (last)
        fprintf(stderr, "\r%40s\r", "");
    else
        fprintf(stderr, "\rconverting, %zu %%", job->total ? job->bytes * 100 / job->total : 0);
}

/* A batch of values of one tensor, shared by the threads that encode it. */
struct batch {
    const struct job *job;
    const struct tensor *t;
    int type;
    size_t first, count;              /* first value of the batch in the tensor, number of values */
    _Atomic uint32_t largest;         /* bits of the largest finite magnitude seen so far */
    size_t block_values, block_bytes; /* of the type to write */
};

/* Return the magnitude from which a value, or the f16 scale of its group, becomes infinite in this
 * type. */
static float type_limit(int type)
{
    static const float f16 = 65520, bf16 = 0x1.ffp127f;
    return type == W_F16    ? f16
           : type == W_BF16 ? bf16
           : type == W_Q8_0 ? f16 * 127
           : type == W_Q4_0 ? f16 * 8
                            : INFINITY;
}

/* Raise b->largest to the largest finite magnitude in x[n]. The bits of non-negative floats sort
 * like their values, so an integer compare is enough. */
static void note_largest(struct batch *b, const float *x, size_t n)
{
    float most = 0;
    uint32_t bits, known = b->largest;
    for (size_t i = 0; i < n; i++)
        most = fabsf(x[i]) > most && fabsf(x[i]) < INFINITY ? fabsf(x[i]) : most;
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
        weights_floats(x, b->t, b->first + at, n, NULL); /* cmd_convert_plan checked the type */
        note_largest(b, x, n);
        quant_encode(b->job->out + at / b->block_values * b->block_bytes, b->type, x, NULL, n);
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
            if (largest >= type_limit(type))
                return err_set(err, ERR_FORMAT,
                               "%s: tensor %s: expected values below %g for %s, found %g",
                               weights_path(job->w), t->name, (double)type_limit(type),
                               wtype_name(type), (double)largest);
            ggufw_data(job->g, job->out, b.count / b.block_values * b.block_bytes);
        }
        os_dontneed(src, b.count / values * bytes);
        job->bytes += b.count / values * bytes;
        progress(job, false);
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
    progress(job, true);
    return code;
}

/* Reject an output that is a folder or the input itself. Overwriting the input would be safe,
 * because the new file is renamed over the mapped one, but it is surely a mistake. */
static int check_paths(const char *in, const char *out, struct err *err)
{
    struct stat a, b;
    if (stat(out, &b) != 0)
        return OK;
    if (S_ISDIR(b.st_mode))
        return err_set(err, ERR_ARG, "%s: expected a file to write, found a folder", out);
    if (stat(in, &a) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
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
    job->begun = os_now_ns();
    if (strcmp(weights_format(w), "safetensors") == 0)
        code = err_set(err, ERR_FORMAT, "%s: expected a model folder or a GGUF file, found %s", in,
                       "a safetensors file alone: its folder has the config.json");
    if (code == OK)
        code = cmd_convert_plan(job, err);
    if (code == OK)
        code = pool_open(&job->pool, threads, err);
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

static int cmd_convert_main(int argc, char **argv)
{
    static const int allowed[] = { W_F32, W_F16, W_BF16, W_Q8_0, W_Q4_0 };
    struct job job = { 0 };
    struct err err;
    int nargs, status = options_parse(&cmd_convert, argc, argv, &nargs);
    if (status >= 0)
        return status;
    if (nargs != 2 || !type_name) {
        fprintf(stderr, "mizzle convert: expected IN OUT --type TYPE; see mizzle convert --help\n");
        return EXIT_USAGE;
    }
    bool known = false;
    for (size_t i = 0; wtype_parse(&job.type, type_name) && i < sizeof(allowed) / sizeof(int); i++)
        known = known || allowed[i] == job.type;
    char in[FIND_PATH];
    int code = known
                   ? find_model(in, argv[1], &err)
                   : err_set(&err, ERR_ARG,
                             "--type: expected f32, f16, bf16, q8_0 or q4_0, found %s", type_name);
    if (code == OK)
        code = check_paths(in, argv[2], &err);
    setup_catch_interrupts();
    if (code == OK)
        code = convert(&job, in, argv[2], &err);
    return command_fail("convert", code, &err);
}

const struct command cmd_convert = {
    "convert",
    "convert a model to GGUF, with another tensor type",
    "IN OUT --type TYPE",
    "Reads a Hugging Face folder or a GGUF file and writes a GGUF file that llama.cpp can read. "
    "Matrices are stored in the type asked for; norms and biases stay F32. Matrices whose rows "
    "cannot be split into blocks of 32 values become F16. The tokenizer of a folder is written "
    "into the file.\n\n"
    "OUT appears only once it is complete, and replaces any file of that name.\n\n"
    "  mizzle convert Qwen2.5-0.5B-Instruct qwen.gguf --type q8_0\n"
    "  mizzle convert qwen.gguf small.gguf --type q4_0 --pure\n",
    (const struct option_group *const[]){ &own, NULL },
    cmd_convert_main,
};
