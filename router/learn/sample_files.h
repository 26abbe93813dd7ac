/* sample_files.h - a collection of samples on disk: a folder with shards and meta.json.
 *
 * meta.json is written first, with "complete": false, and holds everything that decides what the
 * samples are; so a later run into the same folder must have the same options. Then come the
 * shards NNNNN.safetensors, SAMPLE_FILES_TEXTS texts each, one after the other, and last meta.json
 * again with the counts. Each file appears complete or not at all, so a collection that is killed
 * and run again ends with the same bytes. */
#ifndef ROUTER_LEARN_SAMPLE_FILES_H
#define ROUTER_LEARN_SAMPLE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/fingerprint.h"
#include "model/session.h"
#include "router/learn/sample_shard.h"

struct err;
struct samples;

enum { SAMPLE_FILES_TEXTS = 16 };

#define SAMPLE_FILES_NO_LIMIT UINT64_MAX

struct sample_meta {
    char dir[512];              /* the folder, for messages; not in meta.json */
    char task[32];              /* "csqa"; of several folders "csqa+gsm8k" */
    char data[65];              /* SHA-256 of the task's file, in hex; "" when it has none */
    char prompt[96];            /* form of the prompts: "citer" */
    char kind[16], wording[16]; /* of the milli task's questions: "all", "where"; else "" */
    char labels[16];            /* "match", "citer", "divergent" */
    enum tap tap;               /* which hidden state */
    char kv[8];                 /* type of the KV cache: "f32" */
    char router[65];            /* round 2: SHA-256 of the router's file; else "" */
    char threshold[16];         /* round 2: as a decimal number; else "" */
    uint64_t round;             /* 1 or 2 */
    uint64_t rollouts;          /* most rollouts, or SAMPLE_FILES_NO_LIMIT */
    uint64_t max_tokens;        /* of an answer that is written here */
    uint64_t seed, world;       /* of the milli task */
    uint64_t texts;             /* of the task that were asked for */
    char edge[MODEL_NAME];      /* the local model's name, for people */
    char weights[16];           /* type of its weights: "Q8_0" */
    uint64_t model;             /* its model_fingerprint */
    uint64_t tokenizer;         /* its tokenizer_fingerprint, which the cloud shares */
    uint64_t exact;             /* its model_exact_fingerprint */
    char cloud[2 * MODEL_NAME]; /* the cloud model's name, or "" when no cloud is used */
    char cloud_url[256];        /* its server; "" when it is in this process */
    char cloud_says[256];       /* what it says of its weights (cloud.h); "": nothing */
    char template[16];          /* of the conversations, if prompts are such; else "" */
    char think[8];              /* as --think; "": as the template has it */
    char kernels[16];           /* "exact", or the set whose bits are its own */
    char mizzle[16];            /* version that began it */
    uint64_t context;           /* positions; longer texts are left out */
    uint64_t dim, vocab;        /* of the local model: hidden size, ids in use */
    bool complete;
    struct sample_counts counts; /* when complete */
};

/* Return the number of shards of a collection of this many texts. */
size_t sample_files_shards(const struct sample_meta *m);
/* Set *out to shard number i without samples. */
void sample_files_begin_shard(struct sample_shard *out, const struct sample_meta *m, size_t i);
/* Append the samples of a shard to *out, which has its dim; texts are numbered from base on.
 * ERR_NOMEM. */
int sample_files_append(struct samples *out, const struct sample_shard *s, uint32_t base,
                        struct err *err);

/* Append all samples of a finished collection to *out, whose dim is set when it is empty. meta is
 * all zero at first and then describes the folder; if it describes another folder already, both
 * must agree in labels, tap, KV type, model and tokenizer (ERR_ARG names both folders), texts are
 * numbered on, and meta names the tasks of both. ERR_FORMAT names file, field, expected and found:
 * no collection, or one that is not finished; shards that are missing, cut or of another
 * collection; and all that sample_shard_read refuses. ERR_NOMEM. After an error the samples of
 * earlier folders are as they were. */
int sample_files_read(struct samples *out, struct sample_meta *meta, const char *dir,
                      struct err *err);

/* A collection that is being made by this process. */
struct sample_files {
    struct sample_meta meta;
    uint32_t collection; /* checksum of the options, which binds shards to them */
    int lock;            /* descriptor of meta.json, or -1 */
};

/* Open the folder for the collection that meta describes; it is made if it does not exist, and a
 * collection with the same options is continued. Unfinished files of killed runs are deleted.
 * ERR_ARG names the field and both values when the folder holds a collection with other options;
 * ERR_FORMAT: a bad meta.json; ERR_IO: the folder cannot be written, or another process is
 * collecting into it; ERR_NOMEM. */
int sample_files_open(struct sample_files *f, const struct sample_meta *meta, const char *dir,
                      struct err *err);
/* Close it without finishing the collection. */
void sample_files_close(struct sample_files *f);
/* Read shard number i if it exists: *exists. Errors as in sample_shard_read. */
int sample_files_shard(struct sample_shard *out, bool *exists, const struct sample_files *f,
                       size_t i, struct err *err);
/* Write shard number i. ERR_IO, ERR_NOMEM. */
int sample_files_write(const struct sample_files *f, size_t i, struct sample_shard *s,
                       struct err *err);
/* Finish the collection: write meta.json with the counts of all shards. ERR_IO, ERR_NOMEM. */
int sample_files_finish(struct sample_files *f, const struct sample_counts *counts,
                        struct err *err);

#endif
