#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/escaped.h"
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

void info_print_imatrix_json(const char *path, const struct imatrix *m, bool list)
{
    json_t *root = json_object(), *texts = json_array(), *entries = json_array();
    for (size_t i = 0; i < imatrix_texts(m); i++)
        json_array_append_new(texts, escaped_json(imatrix_text(m, i).p, imatrix_text(m, i).n));
    for (size_t i = 0; list && i < imatrix_count(m); i++) {
        const struct imatrix_entry *e = imatrix_at(m, i);
        json_array_append_new(entries, json_pack("{s:o, s:I}", "name",
                                                 escaped_json(e->name, strlen(e->name)), "inputs",
                                                 (json_int_t)e->n));
    }
    json_object_set_new(root, "file", escaped_json(path, strlen(path)));
    json_object_set_new(root, "format", json_string("imatrix"));
    json_object_set_new(root, "gguf", json_boolean(imatrix_is_gguf(m)));
    json_object_set_new(root, "matrices", json_integer((json_int_t)imatrix_count(m)));
    json_object_set_new(root, "chunks", json_integer(imatrix_chunks(m)));
    json_object_set_new(root, "chunk_size", json_integer(imatrix_chunk_size(m)));
    json_object_set_new(root, "texts", texts);
    if (list)
        json_object_set(root, "matrix_list", entries);
    json_decref(entries);
    json_dumpf(root, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(root);
}
