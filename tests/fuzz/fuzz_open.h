/* fuzz_open.h - opens all of a model, as every command does. */
#ifndef TESTS_FUZZ_FUZZ_OPEN_H
#define TESTS_FUZZ_FUZZ_OPEN_H

/* Open weights, model and tokenizer of a path. */
void fuzz_open(const char *path);

#endif
