/* demo_files.h - finds the files of the demo pair, and reads the questions about its world, which
 * lie beside it: {"prompt":"Question: ...","answer":" ..."}, one in a line. */
#ifndef TOOLS_CLI_DEMO_FILES_H
#define TOOLS_CLI_DEMO_FILES_H

#include <jansson.h>
#include <stdint.h>

struct err;

/* Return the path of a file of the demo pair, e.g. "edge-0.5.gguf", or of a folder beside it, e.g.
 * "../routers", which comes with the program, too; NULL if it cannot be read.
 * MIZZLE_DEMO names the folder if it is set. Otherwise the file is searched relative to the
 * program: in the sources (weights/milli) and where it is installed (PREFIX/share/mizzle/milli).
 * The string is static and stays valid until four others were asked for. Not thread-safe. */
const char *demo_files_path(const char *file);

/* argv[0], set by main for systems that do not tell a program its own path. */
extern const char *demo_files_program;

#define DEMO_QUESTIONS "questions.jsonl"
enum { DEMO_QUESTIONS_COUNT = 1000 };

/* Read the first n of them, at most DEMO_QUESTIONS_COUNT, into an array of such objects, which is
 * the caller's to release; NULL after an error. ERR_IO: no file; ERR_FORMAT names file, line and
 * what was expected; ERR_NOMEM. */
int demo_questions_read(json_t **out, size_t n, struct err *err);
/* Read question n, in the order of the file for seed 1, drawn from it for any other; it is the
 * caller's to release. ERR_ARG: n is DEMO_QUESTIONS_COUNT or more; other errors as above. */
int demo_question(json_t **out, size_t n, uint64_t seed, struct err *err);
/* Return the value of this key; lives as long as the question. */
const char *demo_question_text(const json_t *question, const char *key);

#endif
