/* bench_serve.h - declarations that the files of `mizzle bench serve` share. */
#ifndef TOOLS_BENCH_BENCH_SERVE_H
#define TOOLS_BENCH_BENCH_SERVE_H

#include <stddef.h>
#include <stdint.h>

struct err;

/* Numbers that were measured. Start with all zero; free with series_free. */
struct series {
    double *at; /* [n]; sorted by series_share */
    size_t n, room;
};
/* Append a number. ERR_NOMEM. */
int series_add(struct series *s, double v, struct err *err);
/* Sort, and return the number below which this share lies: 0.5 is the median, 1 the largest. NaN
 * when there is none. */
double series_share(struct series *s, double share);
void series_free(struct series *s);

/* What is measured with one number of clients, over all rounds. */
struct serve_row {
    size_t clients;
    size_t errors;        /* answers that failed; none of the series but gap has them */
    struct series prompt; /* tokens of each prompt, as the server counts them */
    struct series tokens; /* tokens of each answer */
    struct series rate;   /* of each round: tokens per second of all clients */
    struct series each;   /* of each answer: tokens per second after the first piece of text */
    struct series ttft;   /* of each answer: ms from the request to the first piece of text */
    struct series gap;    /* ms between two pieces of text of one answer */
    struct series longs;  /* of each round: ms to the first piece of text of the long prompt */
    struct series pauses; /* of each round: the longest gap of the others in that time, ms */
};

/* What is asked of a server. */
struct serve_target {
    const char *url;    /* as given, for messages */
    const char *key;    /* or NULL */
    const char *model;  /* its name; NULL: the first that the server lists */
    size_t tokens;      /* of an answer */
    size_t prompt;      /* words of a prompt */
    size_t long_prompt; /* words of the long prompt; 0: there is none */
};

/* Clients of one server, driven by one thread. */
struct serve_clients;
/* Check the URL and ask the server for the names of its models. ERR_ARG: the URL; ERR_NET,
 * ERR_REMOTE: no list came; ERR_STOP, ERR_NOMEM. Strings of the target are borrowed. */
int serve_clients_open(struct serve_clients **out, const struct serve_target *t, struct err *err);
void serve_clients_close(struct serve_clients *s);
/* Return the name that is sent as "model". */
const char *serve_clients_model(const struct serve_clients *s);
/* Let row->clients clients ask at the same time, wait for all answers of at most `tokens` tokens,
 * and add what they measured to the row. No text was asked before, and no two begin alike. A failed
 * answer is counted; ERR_NET, ERR_REMOTE, ERR_TEXT: all failed, and err has the first one's reason.
 * ERR_ARG: the answers ended before the long prompt was read. ERR_STOP, ERR_NOMEM. */
int serve_clients_round(struct serve_clients *s, struct serve_row *row, size_t tokens,
                        struct err *err);

/* Print the table. Sorts the series. ERR_NOMEM: a row of JSON cannot be made. */
int serve_report(const char *format, const struct serve_target *t, const char *model,
                 struct serve_row *rows, size_t n, struct err *err);

#endif
