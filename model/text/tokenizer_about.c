/* tokenizer_about.c - what an open tokenizer tells about itself. */
#include <string.h>

#include "model/text/tokenizer_internal.h"

size_t tokenizer_size(const struct tokenizer *t)
{
    return t->size;
}

const char *tokenizer_bytes(const struct tokenizer *t, uint32_t id, size_t *n)
{
    *n = 0;
    if (id >= t->size || !t->pieces[id].bytes.p)
        return NULL;
    *n = t->pieces[id].bytes.n;
    return t->pieces[id].bytes.p;
}

bool tokenizer_special(const struct tokenizer *t, const char *text, uint32_t *id)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < t->nadded; i++) {
        const struct str *s = &t->pieces[t->added[i]].bytes;
        if (s->n == n && !memcmp(s->p, text, n)) {
            *id = t->added[i];
            return true;
        }
    }
    return false;
}

bool tokenizer_is_control(const struct tokenizer *t, uint32_t id)
{
    return id < t->size && t->pieces[id].type == PIECE_CONTROL;
}

bool tokenizer_is_eog(const struct tokenizer *t, uint32_t id)
{
    for (size_t i = 0; i < t->neog; i++)
        if (t->eog[i] == id)
            return true;
    return false;
}

bool tokenizer_eos(const struct tokenizer *t, uint32_t *id)
{
    if (t->has_eos)
        *id = t->eog[0];
    return t->has_eos;
}

bool tokenizer_bos(const struct tokenizer *t, uint32_t *id)
{
    if (t->add_bos)
        *id = t->bos;
    return t->add_bos;
}

const char *tokenizer_template(const struct tokenizer *t)
{
    return t->template;
}

size_t tokenizer_npieces(const struct tokenizer *t)
{
    return t->count;
}

void tokenizer_piece(const struct tokenizer *t, uint32_t id, struct str *piece, int *type)
{
    *piece = t->pieces[id].raw;
    *type = t->pieces[id].type ? t->pieces[id].type | t->pieces[id].flags : PIECE_UNUSED;
}

size_t tokenizer_nmerges(const struct tokenizer *t)
{
    return t->nmerges;
}

void tokenizer_merge(const struct tokenizer *t, size_t i, struct str *left, struct str *right)
{
    *left = t->pieces[t->merges[i].left].raw;
    *right = t->pieces[t->merges[i].right].raw;
}
