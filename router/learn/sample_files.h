/* sample_files.h - a collection of samples on disk: a folder of shards, NNNNN.safetensors, which
 * hold SAMPLE_FILES_TEXTS texts each, one after the other, and an empty file named lock.
 *
 * A shard's tensors are hidden F32 [n][dim]; label and way U8 [n]; edge, cloud, gold and text I32
 * [n]; before I32 [n][2]; subject U32 [n]; features F32 [n][8], in the order of features.h; and
 * with labels gain also gain I8 [n] and right U8 [n]. Its metadata holds the settings, which are
 * everything that decides what the samples are and so are the same in all shards, its texts, the
 * counts, and a checksum of these.
 *
 * A shard is there complete or not at all, and a later run into the folder must have the same
 * settings. So a collection that is killed and run again ends with the same bytes. A shard may lack
 * the tensor hidden, to be kept in little space: collecting into its folder, with any version,
 * makes it whole, whatever its tap was. */
#ifndef ROUTER_LEARN_SAMPLE_FILES_H
#define ROUTER_LEARN_SAMPLE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/fingerprint.h"
#include "router/learn/samples.h"

enum { SAMPLE_FILES_TEXTS = 16 };

#define SAMPLE_FILES_NO_LIMIT UINT64_MAX

/* The settings: TEXT(name, bytes, scope), NUMBER(name, scope), and HEX(name, scope), a number that
 * is written in 16 hexadecimal digits. Folders that are read together must agree in those of scope
 * MODEL. */
#define SAMPLE_SETTINGS(TEXT, NUMBER, HEX)                                                       \
    TEXT(task, 32, FOLDER)              /* "csqa"; of several folders "csqa+gsm8k" */            \
    TEXT(data, 65, FOLDER)              /* SHA-256 of the task's file; "" when it has none */    \
    TEXT(prompt, 96, FOLDER)            /* form of the prompts: "citer" */                       \
    TEXT(kind, 16, FOLDER)              /* of the milli task's questions: "all"; else "" */      \
    TEXT(wording, 16, FOLDER)           /* likewise */                                           \
    TEXT(labels, 16, MODEL)             /* "match", "citer", "divergent", "gain" */              \
    TEXT(tap, 32, MODEL)                /* which hidden state: "final" */                        \
    TEXT(kv, 8, MODEL)                  /* type of the KV cache: "f32" */                        \
    NUMBER(round, FOLDER)               /* 1; 2 with a router */                                 \
    TEXT(router, 65, FOLDER)            /* SHA-256 of the router's file, or "" */                \
    TEXT(threshold, 16, FOLDER)         /* the router's, as a decimal number, or "" */           \
    NUMBER(max_rollouts, FOLDER)        /* or SAMPLE_FILES_NO_LIMIT */                           \
    NUMBER(max_tokens, FOLDER)          /* of an answer that is written here */                  \
    NUMBER(seed, FOLDER)                /* of the milli task, */                                 \
    NUMBER(world, FOLDER)               /* and of its world */                                   \
    NUMBER(questions, FOLDER)           /* texts of the task that were asked for */              \
    TEXT(edge, MODEL_NAME, FOLDER)      /* the local model's name, for people */                 \
    TEXT(weights, 16, MODEL)            /* type of its weights: "Q8_0" */                        \
    HEX(model, MODEL)                   /* its model_fingerprint */                              \
    HEX(tokenizer, MODEL)               /* its tokenizer_fingerprint, which the cloud shares */  \
    HEX(exact, MODEL)                   /* its model_exact_fingerprint */                        \
    TEXT(cloud, 2 * MODEL_NAME, FOLDER) /* the cloud model's name, or "" without a cloud */      \
    TEXT(cloud_url, 256, FOLDER)        /* its server; "" when it is in this process */          \
    TEXT(cloud_says, 256, FOLDER)       /* what it says of its weights (cloud.h), or "" */       \
    TEXT(template, 16, FOLDER)          /* of the conversations, if prompts are such; else "" */ \
    TEXT(think, 8, FOLDER)              /* as --think; "": as the template has it */             \
    TEXT(kernels, 16, MODEL)            /* "exact", or the set whose bits are its own */         \
    TEXT(mizzle, 16, FOLDER)            /* version that began it */                              \
    NUMBER(context, FOLDER)             /* positions; longer texts are left out */               \
    NUMBER(dim, MODEL)                  /* hidden size of the local model */                     \
    NUMBER(vocab, MODEL)                /* its ids in use */

#define SAMPLE_COUNTS(COUNT)                                                              \
    COUNT(texts)    /* that gave samples */                                               \
    COUNT(too_long) /* texts left out because they are longer than the context */         \
    COUNT(refused)  /* texts left out because the cloud refused them */                   \
    COUNT(written)  /* texts without a reference answer, for which the cloud wrote one */ \
    COUNT(samples)                                                                        \
    COUNT(right)    /* samples with label 1 */                                            \
    COUNT(rollouts) /* samples whose answer was written to its end */                     \
    COUNT(left_out) /* tokens left out because their rollout was not drawn */

struct sample_meta {
    char dir[512]; /* the folder, for messages; it is not in the files */
#define TEXT(name, bytes, scope) char name[bytes];
#define NUMBER(name, scope)      uint64_t name;
    SAMPLE_SETTINGS(TEXT, NUMBER, NUMBER)
#undef TEXT
#undef NUMBER
};

struct sample_counts {
#define COUNT(name) uint64_t name;
    SAMPLE_COUNTS(COUNT)
#undef COUNT
};

struct sample_shard {
    struct sample_meta meta;
    uint64_t first, ntexts; /* texts [first, first + ntexts) of the task */
    struct sample_counts counts;
    bool no_states;         /* the file has no hidden states */
    struct samples samples; /* the caller's to close */
};

/* Return the number of shards of a collection of this many texts. */
size_t sample_files_shards(const struct sample_meta *m);
/* Set *out to shard number i without samples. */
void sample_files_begin(struct sample_shard *out, const struct sample_meta *m, size_t i);
/* Add b to a. */
void sample_counts_add(struct sample_counts *a, const struct sample_counts *b);

/* Append all samples of a collection to *out, whose dim is set when it is empty. meta is all zero
 * at first and then describes the folder; if it describes another folder already, both must agree
 * (ERR_ARG names field, expected and found), texts are numbered on, and meta names the tasks of
 * both. ERR_FORMAT names file, field, expected and found: no collection, or one that is not
 * finished; a shard that is cut, of another collection or without hidden states; values that are
 * not finite, ids that are not below vocab, labels other than 0 and 1, texts out of range or out of
 * order, counts that contradict the rows. ERR_IO, ERR_NOMEM. After an error the samples of earlier
 * folders are as they were. */
int sample_files_read(struct samples *out, struct sample_meta *meta, const char *dir,
                      struct err *err);

/* A collection that is being made by this process. */
struct sample_files {
    struct sample_meta meta;
    int lock; /* descriptor of the file lock, or -1 */
};

/* Open the folder for the collection that meta describes; it is made if it does not exist, and a
 * collection with the same settings is continued. Unfinished files of killed runs are deleted.
 * ERR_ARG names the field and both values when the folder holds a collection with other settings;
 * ERR_FORMAT: a bad shard; ERR_IO: the folder cannot be written, or another process is collecting
 * into it; ERR_NOMEM. */
int sample_files_open(struct sample_files *f, const struct sample_meta *meta, const char *dir,
                      struct err *err);
void sample_files_close(struct sample_files *f);
/* Begin shard number i, or read it if it exists: *exists; it may have no_states. Errors as in
 * sample_files_read. */
int sample_files_shard(struct sample_shard *out, bool *exists, const struct sample_files *f,
                       size_t i, struct err *err);
/* Write a shard. ERR_IO, ERR_NOMEM. */
int sample_files_write(const struct sample_shard *s, struct err *err);

#endif
