/* session_file.h - the evaluated beginning of a text in a file, so that it need not be read again.
 *
 * The file holds ids and their KV cache. What a key or a value is depends on the ids up to it and
 * on the model alone, so a session that is loaded has the bits that evaluating these ids would give
 * (session.h). A file is bound to all that these bits depend on: the weights, every field of
 * struct model_config, the type of the KV cache, and the kernels, where all exact sets are one. It
 * holds the text itself, in the form of its ids: who may read the file may read the text.
 *
 * Format, all numbers in the byte order of the machine, which the magic number shows:
 *
 *   head    u64 magic, version, weights; 8 bytes KV type, 16 bytes kernels ("exact" or the name of
 *           an inexact set), u64 n; then the fields of struct model_config, each as a double
 *   ids     u32 [n]
 *   cache   of each KV head of each layer: ceil(n / 16) groups of keys, n values (kernels/kv.h);
 *           in the last group, lanes beyond n are zero
 *
 * After each of the three follows a u32, the CRC-32 of all before it except the other CRCs. */
#ifndef MODEL_SESSION_FILE_H
#define MODEL_SESSION_FILE_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct session;

/* Goes up with every change of the format, of kernels/kv.h's layouts and of the engine's bits. */
enum { SESSION_FILE_VERSION = 1 };

/* Find out how many of ids[n] the file begins with, at most all of its own. If s holds fewer of
 * them, load them: s then holds these ids and nothing else, without hidden states. weights is
 * model_exact_fingerprint. Nothing is allocated, whatever the file says.
 *
 * A file that does not exist or is empty shares nothing, which is OK. Errors, each with the file,
 * the field, what was expected and what was found: ERR_FORMAT: a prompt cache that is damaged, of
 * another version, or of another model or KV type; ERR_IO: it cannot be read; ERR_ARG: not a prompt
 * cache at all, which should not be replaced, or n does not fit into the context. After ERR_FORMAT
 * and ERR_IO the session is unchanged or empty; *shared is 0. */
int session_file_load(size_t *shared, struct session *s, const char *path, uint64_t weights,
                      const uint32_t *ids, size_t n, struct err *err);

/* Write the first n ids of s, n >= 1, and their cache. The file appears complete or not at all, and
 * only its owner can read it. ERR_ARG: s holds fewer ids; ERR_IO, ERR_NOMEM: what was there before
 * stays. */
int session_file_save(const struct session *s, size_t n, const char *path, uint64_t weights,
                      struct err *err);

#endif
