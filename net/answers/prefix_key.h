/* prefix_key.h - a prefix of token ids as 128 bits, under which its answer is kept.
 *
 * SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012; the reference's variant for
 * 128 bits), keyed by a fingerprint of the model's name and the tokenizer: an answer of another
 * model or tokenizer is under another key and never found. With 2^32 answers kept, two prefixes
 * share a key with a probability of 2^-65. Values are the same on every machine. */
#ifndef NET_ANSWERS_PREFIX_KEY_H
#define NET_ANSWERS_PREFIX_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prefix_key {
    uint64_t lo, hi;
};

enum { PREFIX_KEY_TEXT = 33 }; /* 32 hexadecimal digits and a 0 */

/* The fingerprint. model: its name at the server, or the server's URL where it names none. */
struct prefix_key prefix_key_fingerprint(const char *model, uint64_t tokenizer);
/* Of ids[n] under a fingerprint. n may be 0. */
struct prefix_key prefix_key_of(const struct prefix_key *print, const uint32_t *ids, size_t n);

/* A number for a hash table of keys that come from a file: with a seed that its author cannot know,
 * keys cannot be chosen so that they collide. */
struct prefix_key prefix_key_seed(void);
uint64_t prefix_key_mix(const struct prefix_key *seed, const struct prefix_key *k);

bool prefix_key_same(const struct prefix_key *a, const struct prefix_key *b);
void prefix_key_text(char out[PREFIX_KEY_TEXT], const struct prefix_key *k);
/* False unless text[n] is 32 digits as prefix_key_text writes them. */
bool prefix_key_parse(struct prefix_key *out, const char *text, size_t n);

#endif
