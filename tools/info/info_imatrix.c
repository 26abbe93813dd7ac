#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/escaped.h"
#include "tools/cli/json_report.h"
#include "tools/info/info.h"
#include "weights/imatrix.h"

bool info_may_be_imatrix(const char *path, const struct weights *w)
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t n = strlen(base);
    struct str type = { "", 0 };
    if (w)
        return weights_str(w, "general.type", &type) && type.n == 7 &&
               memcmp(type.p, "imatrix", 7) == 0;
    return strstr(base, "imatrix") || (n > 4 && strcmp(base + n - 4, ".dat") == 0);
}

void info_print_imatrix(const char *path, const struct imatrix *m, bool list)
{
    printf("%-14s", "file");
    escaped_put(path, strlen(path));
    printf("\n%-14simportance matrix, %s, of %zu matri%s\n", "format",
           imatrix_is_gguf(m) ? "gguf" : "llama.cpp's older form", imatrix_count(m),
           imatrix_count(m) == 1 ? "x" : "ces");
    for (size_t i = 0; i < imatrix_texts(m); i++) {
        struct str text = imatrix_text(m, i);
        printf("%-14s", "text");
        escaped_put(text.p, text.n);
        putchar('\n');
    }
    if (imatrix_chunks(m)) {
        printf("%-14s%u", "pieces", (unsigned)imatrix_chunks(m));
        if (imatrix_chunk_size(m))
            printf(" of %u tokens", (unsigned)imatrix_chunk_size(m));
        putchar('\n');
    }
    for (size_t i = 0; list && i < imatrix_count(m); i++) {
        const struct imatrix_entry *e = imatrix_at(m, i);
        printf("  %12zu inputs  ", e->n);
        escaped_put(e->name, strlen(e->name));
        putchar('\n');
    }
}

/* Return the texts that were measured. NULL: out of memory. */
static json_t *info_imatrix_texts(const struct imatrix *m)
{
    json_t *texts = json_array();
    for (size_t i = 0; i < imatrix_texts(m); i++)
        json_report_add(&texts, escaped_json(imatrix_text(m, i).p, imatrix_text(m, i).n));
    return texts;
}

/* Return the matrices. NULL: out of memory. */
static json_t *info_imatrix_entries(const struct imatrix *m)
{
    json_t *entries = json_array();
    for (size_t i = 0; i < imatrix_count(m); i++) {
        const struct imatrix_entry *e = imatrix_at(m, i);
        json_report_add(&entries,
                        json_pack("{s:o, s:I}", "name", escaped_json(e->name, strlen(e->name)),
                                  "inputs", (json_int_t)e->n));
    }
    return entries;
}

int info_print_imatrix_json(const char *path, const struct imatrix *m, bool list, struct err *err)
{
    json_t *root =
        json_pack("{s:o, s:s, s:b, s:I, s:I, s:I, s:o}", "file", escaped_json(path, strlen(path)),
                  "format", "imatrix", "gguf", imatrix_is_gguf(m), "matrices",
                  (json_int_t)imatrix_count(m), "chunks", (json_int_t)imatrix_chunks(m),
                  "chunk_size", (json_int_t)imatrix_chunk_size(m), "texts", info_imatrix_texts(m));
    if (list)
        json_report_set(&root, "matrix_list", info_imatrix_entries(m));
    return json_report_print(path, root, JSON_COMPACT, "", "", err);
}
