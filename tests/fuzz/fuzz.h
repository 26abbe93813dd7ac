/* fuzz.h - programs that give one reader any bytes at all.
 *
 * Each fuzz_*.c of this folder has the entry point of libFuzzer, which mutates its seeds and
 * follows the branches taken. An input must open or be refused with one line, and leave no memory
 * behind. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "tests/support/test.h"

struct err;
struct weights;

/* Called by libFuzzer before the first input: write the seeds into the folders among the arguments.
 */
int LLVMFuzzerInitialize(int *argc, char ***argv);
/* What a program defines. An input is p[n]; the result is 0. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
/* Write seed i into out[room] and return its length; 0 after the last one. */
size_t fuzz_seed(size_t i, uint8_t *out, size_t room);

enum { FUZZ_ROOM = 1 << 19, FUZZ_PARTS = 4 };

/* Begin an input: memory is counted from here on. */
void fuzz_begin(void);
/* End it: require that a refusal has one line, and that no memory is left. */
void fuzz_end(int code, const struct err *err);

/* End it with a file that was read with this code: index and close it, and touch the ends of all
 * that it has. */
void fuzz_table(struct weights *w, int code, struct err *err);

/* Append one of the files for which an input stands to a seed of n bytes, after a line "====",
 * unless it is the first; return the new length. */
size_t fuzz_join(uint8_t *seed, size_t n, size_t room, const void *p, size_t bytes);

/* Return a folder in memory, or below build/ where the system has none, that is removed at the
 * end. */
const char *fuzz_folder(void);
/* Return the path of a file in it (static storage, one for each of FUZZ_PARTS names). */
const char *fuzz_path(const char *name);
/* Write a file in it. */
void fuzz_write(const char *name, const uint8_t *p, size_t n);

/* Split an input into these files and write them; those that are missing are empty. */
void fuzz_files(const char *const *names, size_t count, const uint8_t *p, size_t n);

/* Open weights, model and tokenizer of a path, as every command does. */
void fuzz_open(const char *path);
/* Open the tokenizer of a folder; if it opens, encode a text, decode it, and look at every piece.
 */
void fuzz_text_open(const char *path);
/* Write a vocab.json of all bytes with `end` instead of its brace; return its length. */
size_t fuzz_text_vocab(uint8_t *out, size_t room, const char *end);

/* A small model as one GGUF file with its tokenizer, in this type; return the length. */
size_t fuzz_tiny_gguf(uint8_t *out, size_t room, int type);
/* A file of the tiny model (tests/support/tiny.h). */
size_t fuzz_tiny_file(uint8_t *out, size_t room, const char *name);
/* Read a file of the test data; 0 if there is none. */
size_t fuzz_data(uint8_t *out, size_t room, const char *name);

#endif
